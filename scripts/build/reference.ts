// The facts of the OpenAPI description as Markdown, for the guide: what all operations have, each with its own and its
// form, objects, and one table of errors. A keyword of a schema that is not known here stops the build.

import { isDeepStrictEqual } from "node:util";
import { description, operations } from "../../src/description.ts";
import { B64TOKEN } from "../../src/http/authentication.ts";
import { STATUS } from "../../src/http/errors.ts";
import { pathErrors, type ResponseObject } from "../../src/openapi/components.ts";
import type { JsonSchema, Parameter } from "../../src/openapi/schemas.ts";
import { printJson } from "../../src/values/json.ts";

const schemas: Record<string, JsonSchema> = description.components.schemas;
const { description: text } = description.components.securitySchemes.apiKey;
const API_KEY: Parameter = { name: "Authorization", in: "header", required: true, description: text, schema: {} };

// With what may have been copied around it.
const KEY_PATTERN = String.raw`\s*([Bb][Ee][Aa][Rr][Ee][Rr]\s+)?${B64TOKEN.source}\s*`;
const KEY_FIELD = `<label>API key <small>required</small><input class="key" name="Authorization" data-in="header"
required pattern="${KEY_PATTERN}" title="letters, digits and -._~+/, and = at its end"></label>`;

const HEADER = ` pattern="[ -~]*" title="printable ASCII characters"`;

type Operation = (typeof operations)[number];
type Field = Partial<Omit<Parameter, "in">> & { name: string; in?: string; schema: JsonSchema; example?: unknown };

/** The Markdown of an operation, of what `all` have, of the `errors`, or of an object. Throws at any other name. */
export function referenceOf(name: string): string {
  const operation = operations.find(({ operationId }) => operationId === name);
  if (operation) return describeOperation(operation);
  if (name === "all") return `These are the same for all operations.\n\n${describeParts("all", inAll)}`;
  if (name === "errors") return `## Error codes\n\n${describeErrors()}`;
  return `## ${name} object {#${name}}\n\n${describeObject(name, name)}`;
}

export function describeOperation(operation: Operation): string {
  const { operationId: id, method, path, requestBody } = operation;
  const body = requestBody?.content["application/json"].schema;
  const bodyText = body && `### Body {#${id}-body}\n\n${describeObject(nameOf(body), id)}`;
  const successes = successesOf(operation).map(([status, { content, description }]) => {
    return item(`${id}-${status}`, status, typeOf(content["application/json"].schema, status), description);
  });
  return `<p class="request"><strong>${method}</strong> <code>${path}</code> <small>${id}</small></p>

${operation.description} It also has what [all operations](#all-operations) have.

${formFor(operation, ownOf(operation, parametersOf))}

${describeParts(id, (listOf) => ownOf(operation, listOf), bodyText, successes)}`;
}

/** Something that an operation has several of. */
type ListOf<T> = (operation: Operation) => T[];
const parametersOf: ListOf<Field> = ({ parameters }) => [API_KEY, ...parameters];
const successesOf = ({ responses }: Operation) => Object.entries(responses).filter(([status]) => Number(status) < 400);
// The table of errors says which of their headers matter.
const headersOf: ListOf<Field> = (operation) =>
  successesOf(operation).flatMap(([, { headers }]) =>
    Object.entries(headers).map(([name, { description, schema }]) => ({ name, description, schema })),
  );
const codesOf: ListOf<string> = ({ responses }) =>
  Object.values(responses).flatMap((response) => Object.keys(examplesOf(response)));

const has = (list: unknown[], entry: unknown) => list.some((other) => isDeepStrictEqual(other, entry));
const inAll = <T>(listOf: ListOf<T>): T[] =>
  operations.map(listOf).reduce((shared, list) => shared.filter((entry) => has(list, entry)));
function ownOf<T>(operation: Operation, listOf: ListOf<T>): T[] {
  const shared = inAll(listOf);
  return listOf(operation).filter((entry) => !has(shared, entry));
}

/** What `pick` leaves of the lists of an operation. */
function describeParts(id: string, pick: <T>(listOf: ListOf<T>) => T[], body = "", successes: string[] = []): string {
  const errors = pick(codesOf).map((code) => `[${code}](#error-${code})`);
  return `### Parameters {#${id}-parameters}

${describeFields(id, pick(parametersOf))}

${body}

### Responses {#${id}-responses}

${successes.join("\n")}

Errors: ${errors.join(", ")}

### Response headers {#${id}-headers}

${describeFields(`${id}-header`, pick(headersOf))}`;
}

/**
 * The form that src/site/page.js shows and sends. Its attributes say what to call, and where each field goes
 * (`data-in`). An empty line in it would end the HTML, because Markdown is around it.
 */
function formFor({ operationId, method, path, requestBody }: Operation, fields: Field[]): string {
  if (requestBody) {
    const example = printJson(requestBody.content["application/json"].example, 2);
    fields.push({ name: "JSON", in: "body", required: requestBody.required, schema: {}, example });
  }
  return `<details class="form" data-operation="${operationId}" data-method="${method}" data-path="/v1${path}" hidden>
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
  const { name, in: place, required = false, schema, example } = field;
  const attributes = `name="${name}" data-in="${place}"${required ? " required" : ""}`;
  const component = schemas[nameOf(schema)] ?? schema;
  const options = component.enum?.map((option) => `<option>${escaped(option)}</option>`);
  let control = `<input ${attributes}${place === "header" ? HEADER : ""}>`;
  if (options) control = `<select ${attributes}><option></option>${options.join("")}</select>`;
  if (place === "body") control = `<textarea ${attributes} rows="6">\n${escaped(String(example))}</textarea>`;
  // As plain text, because a link in a label would take its clicks.
  const rules = rulesOf(field).replaceAll(/\[(\w+)\]\(.*?\)|`/g, "$1");
  return `<label>${name} <small>${escaped(rules)}</small>${control}</label>`;
}

/** The text and the properties of an object. `id`: what they belong to. */
function describeObject(component: string, id: string): string {
  const object = schemas[component];
  if (!object?.description) throw new Error(`There is no ${component} to describe.`);
  const fields = Object.entries(object.properties ?? {}).map(([name, { description = "", ...schema }]) => {
    return { name, required: object.required?.includes(name) ?? false, description, schema };
  });
  return `${object.description}\n\n${describeFields(id, fields)}`;
}

/** Parameters, properties or response headers. */
const describeFields = (id: string, fields: Field[]): string =>
  fields.map((field) => item(`${id}-${field.name}`, field.name, rulesOf(field), field.description)).join("\n") ||
  "None.";

/** Where a field is sent, whether it is required, and what it may be. */
function rulesOf({ name, in: place, required, schema }: Field): string {
  const isOptional = required === false || (place && !required);
  const rules = [place, required && "required", isOptional && "optional", typeOf(schema, name)];
  return rules.filter(Boolean).join(" · ");
}

/** A table of all errors. If the texts of operations about one differ, each text names its operations. */
function describeErrors(): string {
  const rows = Object.entries(STATUS).map(([code, status]) => {
    const textOf = ({ responses }: Pick<Operation, "responses">) => examplesOf(responses[status])[code]?.summary ?? "";
    const groups = [...Map.groupBy(operations.filter(textOf), textOf)];
    const linksTo = (group: Operation[]) => group.map(({ operationId: id }) => `[${id}](#${id})`).join(", ");
    const texts = groups.map(([text, group]) => (groups.length > 1 ? `${linksTo(group)}: ${text}` : text));
    const text = texts.join("<br>") || textOf({ responses: pathErrors });
    if (!text) throw new Error(`No operation describes the error ${code}.`);
    return `| ${linkToItself(`error-${code}`, `<code>${code}</code>`)} <small>${status}</small> | ${text} |`;
  });
  return ["| Code and status | What it means, and what to do |", "|---|---|", ...rows].join("\n");
}

const asCode = (text: unknown) => `\`${text}\``;
/** What each keyword of a schema says. Those without words are for tools. */
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
  minLength: () => "",
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
    if (!say) throw new Error(`scripts/build/reference.ts does not show the keyword ${keyword} of ${name}.`);
    return say(value, name);
  });
  return words.filter(Boolean).join(" · ");
}

/** The errors with one status, by their codes. */
const examplesOf = (response?: ResponseObject) => response?.content["application/json"].examples ?? {};

const nameOf = ({ $ref = "" }: JsonSchema) => $ref.replace("#/components/schemas/", "");
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const linkToItself = (id: string, name: string) => `<strong id="${id}"><a href="#${id}">${name}</a></strong>`;

const item = (id: string, name: string, rules: string, text = "") =>
  `- ${linkToItself(id, `<code>${name}</code>`)} <small>${rules}</small>\\\n  ${text}`;
