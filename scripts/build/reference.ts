// The facts of the OpenAPI description as Markdown, for the guide: each operation complete in itself, objects, and one
// table of errors. A keyword that is not known here stops the build.

import { STATUS } from "../../src/http/errors.ts";
import { description } from "../../src/openapi/document.ts";
import type { JsonSchema, Parameter } from "../../src/openapi/schemas.ts";

const schemas: Record<string, JsonSchema> = description.components.schemas;
const { description: text } = description.components.securitySchemes.apiKey;
const API_KEY: Parameter = { name: "Authorization", in: "header", required: true, description: text, schema: {} };

/** Each with its method and path. */
export const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
);
type Operation = (typeof operations)[number];
type Field = Partial<Parameter> & { name: string; schema: JsonSchema };

/** What the guide calls by this name: an operation, the `errors`, or an object. Throws if there is none. */
export function describe(name: string): string {
  const operation = operations.find(({ operationId }) => operationId === name);
  if (operation) return describeOperation(operation);
  return name === "errors" ? describeErrors() : describeObject(name, name);
}

export function describeOperation({ operationId: id, method, path, parameters, responses, ...operation }: Operation) {
  const { tags: _, summary: __, deprecated: ___, description: text, requestBody, ...rest } = operation;
  expectNone(rest, id);
  const fields = [API_KEY, ...parameters].map((parameter) => describeField(id, { required: false, ...parameter }));
  const body = requestBody?.content["application/json"].schema;
  const [successes, errors] = [[] as string[], [] as string[]];
  const headers = new Map<string, string>();
  for (const [status, { description, headers: own, content, ...rest }] of Object.entries(responses)) {
    expectNone(rest, status);
    const type = content ? typeOf(content["application/json"].schema, status) : "no body";
    if (Number(status) >= 400) errors.push(`[${status}](#error-${status})`);
    else successes.push(item(`${id}-${status}`, status, [type], description));
    for (const [name, { required: _, ...header }] of Object.entries(own))
      headers.set(name, describeField(`${id}-header`, { name, ...header }));
  }
  return `<p class="request"><code><strong>${method}</strong> ${path}</code> <small>${id}</small></p>

${text}

### Parameters {#${id}-parameters}

${fields.join("\n")}

${body ? `### Body {#${id}-body}\n\n${describeObject(nameOf(body), id)}` : ""}

### Responses {#${id}-responses}

${successes.join("\n")}
- Errors: ${errors.join(", ")}

### Response headers {#${id}-headers}

${[...headers.values()].join("\n")}`;
}

/** The text and the properties of an object. `id`: what they belong to. */
function describeObject(component: string, id: string): string {
  const { type: _, properties = {}, required = [], description, ...rest } = schemas[component] ?? {};
  const fields = Object.entries(properties).map(([name, { description = "", ...schema }]) =>
    describeField(id, { name, required: required.includes(name), description, schema }),
  );
  if (!description) throw new Error(`There is no ${component} to describe.`);
  expectNone(rest, component);
  return `${description}\n\n${fields.join("\n")}`;
}

/** A parameter, a property or a response header. */
function describeField(id: string, { name, in: place, required, schema, example: _, ...field }: Field): string {
  const { description, ...rest } = field;
  expectNone(rest, name);
  const presence = required === undefined ? required : required ? "required" : "optional";
  return item(`${id}-${name}`, name, [place, presence, typeOf(schema, name)], description);
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
    return say ? say(value, name) : expectNone({ [keyword]: value }, name);
  });
  return words.filter(Boolean).join(" · ");
}

function expectNone(keywords: object, name: string): void {
  const [keyword] = Object.keys(keywords);
  if (keyword) throw new Error(`scripts/build/reference.ts does not show the keyword ${keyword} of ${name}.`);
}

const nameOf = ({ $ref = "" }: JsonSchema) => $ref.replace("#/components/schemas/", "");
const linkToItself = (id: string, name: string) => `<strong id="${id}"><a href="#${id}">${name}</a></strong>`;

const item = (id: string, name: string, facts: (string | undefined)[], text = "") =>
  `- ${linkToItself(id, `<code>${name}</code>`)} <small>${facts.filter(Boolean).join(" · ")}</small>\\\n  ${text}`;
