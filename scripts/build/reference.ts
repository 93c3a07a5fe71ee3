// The facts of the OpenAPI description as Markdown, for the guide: each operation complete in itself, with its form,
// objects, and one table of errors. A keyword that is not known here stops the build.

import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { STATUS } from "../../src/http/errors.ts";
import { description } from "../../src/openapi/document.ts";
import type { JsonSchema, Parameter } from "../../src/openapi/schemas.ts";
import { printJson } from "../../src/values/json.ts";

const schemas: Record<string, JsonSchema> = description.components.schemas;
const { description: text } = description.components.securitySchemes.apiKey;
const API_KEY: Parameter = { name: "Authorization", in: "header", required: true, description: text, schema: {} };

// As in RFC 6750, with what may have been copied around it.
const KEY_PATTERN = String.raw`\s*([Bb][Ee][Aa][Rr][Ee][Rr]\s+)?[\w.~+\/\-]+=*\s*`;
const KEY_FIELD = `<label>API key <small>required</small><input class="key" name="Authorization" data-in="header"
required pattern="${KEY_PATTERN}" title="letters, digits and -._~+/, and = at its end"></label>`;

/** Each with its method and path. */
export const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
);
type Operation = (typeof operations)[number];
type Field = Partial<Omit<Parameter, "in">> & { name: string; in?: string; schema: JsonSchema };

/** What the guide calls by this name: an operation, the `errors`, or an object. Throws if there is none. */
export function describe(name: string): string {
  const operation = operations.find(({ operationId }) => operationId === name);
  if (operation) return describeOperation(operation);
  return name === "errors" ? describeErrors() : describeObject(name, name);
}

export function describeOperation(operation: Operation): string {
  const { operationId: id, method, path, description: text, parameters, requestBody, responses, ...others } = operation;
  const { tags: _, summary: __, deprecated: ___, ...rest } = others;
  rejectUnknown(rest, id);
  const fields = [API_KEY, ...parameters].map((parameter) => describeField(id, { required: false, ...parameter }));
  const body = requestBody?.content["application/json"].schema;
  const [successes, errors] = [[] as string[], [] as string[]];
  const headers = new Map<string, string>();
  for (const [status, { description, headers: own, content, ...rest }] of Object.entries(responses)) {
    rejectUnknown(rest, status);
    const type = content ? typeOf(content["application/json"].schema, status) : "no body";
    if (Number(status) >= 400) errors.push(`[${status}](#error-${status})`);
    else successes.push(item(`${id}-${status}`, status, type, description));
    for (const [name, { required: _, ...header }] of Object.entries(own))
      headers.set(name, describeField(`${id}-header`, { name, ...header }));
  }
  return `<p class="request"><code><strong>${method}</strong> ${path}</code> <small>${id}</small></p>

${text}

${formFor(operation)}

### Parameters {#${id}-parameters}

${fields.join("\n")}

${body ? `### Body {#${id}-body}\n\n${describeObject(nameOf(body), id)}` : ""}

### Responses {#${id}-responses}

${successes.join("\n")}
- Errors: ${errors.join(", ")}

### Response headers {#${id}-headers}

${[...headers.values()].join("\n")}`;
}

/**
 * The form that src/site/page.js shows and sends. Its attributes say what to call, where each field goes (`data-in`),
 * and what a success is. An empty line in it would end the HTML, because Markdown is around it.
 */
function formFor({ operationId, method, path, parameters, requestBody, responses }: Operation): string {
  const [status, success] = Object.entries(responses).find(([status]) => Number(status) < 400) ?? [];
  const { type = "", required = [] } = resolve(success?.content?.["application/json"].schema ?? {});
  const fields: Field[] = parameters.filter(({ name }) => name !== BOOKMARK_HEADER);
  if (requestBody) {
    const example = printJson(requestBody.content["application/json"].example, 2);
    fields.push({ name: "JSON", in: "body", required: requestBody.required, schema: {}, example });
  }
  return `<details class="form" data-operation="${operationId}" data-method="${method}" data-path="/v1${path}"
data-status="${status}" data-type="${type}" data-members="${required.join(" ")}" hidden>
<summary>Send a request</summary>
<form autocomplete="off" autocapitalize="off" spellcheck="false">
<fieldset>
${KEY_FIELD}
${fields.map(fieldFor).join("\n")}
<button>Send</button>
</fieldset>
<output></output>
<pre tabindex="0" role="region" aria-label="Response to ${operationId}"><code></code></pre>
</form>
</details>`;
}

function fieldFor(field: Field): string {
  const { name, in: place, required = false, schema, example = "" } = field;
  const attributes = `name="${name}" data-in="${place}"${required ? " required" : ""}`;
  const value = escaped(String(example));
  const options = resolve(schema).enum?.map((option) => `<option>${escaped(option)}</option>`);
  let control = `<input ${attributes} value="${value}"${place === "header" ? ` pattern="[ -~]*"` : ""}>`;
  if (options) control = `<select ${attributes}><option></option>${options.join("")}</select>`;
  if (place === "body") control = `<textarea ${attributes} rows="6">\n${value}</textarea>`;
  // As plain text, because a link in a label would take its clicks.
  const facts = factsOf({ ...field, required }).replaceAll(/\[(\w+)\]\(.*?\)|`/g, "$1");
  return `<label>${name} <small>${escaped(facts)}</small>${control}</label>`;
}

/** The text and the properties of an object. `id`: what they belong to. */
function describeObject(component: string, id: string): string {
  const { type: _, properties = {}, required = [], description, ...rest } = schemas[component] ?? {};
  const fields = Object.entries(properties).map(([name, { description = "", ...schema }]) =>
    describeField(id, { name, required: required.includes(name), description, schema }),
  );
  if (!description) throw new Error(`There is no ${component} to describe.`);
  rejectUnknown(rest, component);
  return `${description}\n\n${fields.join("\n")}`;
}

/** A parameter, a property or a response header. */
function describeField(id: string, field: Field): string {
  const { name, in: _, required: __, schema: ___, example: ____, description, ...rest } = field;
  rejectUnknown(rest, name);
  return item(`${id}-${name}`, name, factsOf(field), description);
}

/** Where it is sent, whether it is required, and what it may be. */
function factsOf({ name, in: place, required, schema }: Field): string {
  const presence = required === undefined ? required : required ? "required" : "optional";
  return [place, presence, typeOf(schema, name)].filter(Boolean).join(" · ");
}

/** A table of the errors of all operations. If their texts about one differ, each text names its operations. */
function describeErrors(): string {
  const rows = Object.entries(STATUS).map(([code, status]) => {
    const textOf = ({ responses }: Operation) => responses[status]?.description ?? "";
    const groups = [...Map.groupBy(operations.filter(textOf), textOf)];
    const linksTo = (group: Operation[]) => group.map(({ operationId: id }) => `[${id}](#${id})`).join(", ");
    const texts = groups.map(([text, group]) => (groups.length > 1 ? `${linksTo(group)}: ${text}` : text));
    return `| ${linkToItself(`error-${status}`, String(status))} | \`${code}\`: ${texts.join("<br>")} |`;
  });
  return ["| Status | Code, cause and remedy |", "|---|---|", ...rows].join("\n");
}

const asCode = (text: unknown) => `\`${text}\``;
/** What each keyword of a schema says. Patterns and examples are for tools. */
const WORDS: { [Keyword in keyof JsonSchema]: (value: Required<JsonSchema>[Keyword], name: string) => string } = {
  $ref: ($ref, name) => {
    const component = nameOf({ $ref });
    const schema = schemas[component] ?? {};
    return schema.type === "object" ? `[${component}](#${component})` : typeOf(schema, name);
  },
  type: (type) => (type === "array" ? "" : type),
  items: (items, name) => `Array of ${typeOf(items, name)}`,
  format: (format) => (format === "int64" ? "[int64](#large-integers-int64)" : format),
  enum: (values) => `one of ${values.map(asCode).join(", ")}`,
  minimum: (value) => `at least ${value}`,
  maximum: (value) => `at most ${value}`,
  maxLength: (value) => `at most ${value.toLocaleString("en")} characters`,
  const: asCode,
  default: (value) => `default ${asCode(value)}`,
  pattern: () => "",
  examples: () => "",
};

/** What a schema allows, in words. */
function typeOf(schema: JsonSchema, name: string): string {
  const words = Object.entries(schema).map(([keyword, value]) => {
    const say = (WORDS as Record<string, (value: unknown, name: string) => string>)[keyword];
    return say ? say(value, name) : rejectUnknown({ [keyword]: value }, name);
  });
  return words.filter(Boolean).join(" · ");
}

function rejectUnknown(keywords: object, name: string): void {
  const [keyword] = Object.keys(keywords);
  if (keyword) throw new Error(`scripts/build/reference.ts does not show the keyword ${keyword} of ${name}.`);
}

const nameOf = ({ $ref = "" }: JsonSchema) => $ref.replace("#/components/schemas/", "");
const resolve = (schema: JsonSchema) => schemas[nameOf(schema)] ?? schema;
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const linkToItself = (id: string, name: string) => `<strong id="${id}"><a href="#${id}">${name}</a></strong>`;

const item = (id: string, name: string, facts: string, text = "") =>
  `- ${linkToItself(id, `<code>${name}</code>`)} <small>${facts}</small>\\\n  ${text}`;
