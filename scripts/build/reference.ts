// The facts of the OpenAPI description as Markdown, for the guide: each operation complete in itself, objects, and one
// table of errors. A keyword that the page does not show stops the build.

import { STATUS } from "../../src/http/errors.ts";
import { VERSION_HEADER } from "../../src/http/responses.ts";
import { description } from "../../src/openapi/document.ts";
import type { JsonSchema } from "../../src/openapi/schemas.ts";

const { apiKey } = description.components.securitySchemes;
const schemas: Record<string, JsonSchema> = description.components.schemas;
/** Response headers that callers do not need: a 405 names the methods, and operators need the version. */
const UNLISTED = ["Allow", VERSION_HEADER];

/** Each with its method and path. */
export const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
);
type Operation = (typeof operations)[number];

/** A parameter, a property or a response header. Which headers a response has, their texts say. */
interface Field {
  name: string;
  in?: string;
  required?: boolean;
  description?: string | undefined;
  schema: JsonSchema;
  example?: unknown;
}

/** What the guide can refer to by its name: operations, objects, and `errors`. */
export function describeAll(): Record<string, string> {
  const objects = Object.keys(schemas).filter((name) => schemas[name]?.type === "object");
  return {
    ...Object.fromEntries(operations.map((operation) => [operation.operationId, describeOperation(operation)])),
    ...Object.fromEntries(objects.map((name) => [name, describeObject(name, name)])),
    errors: describeErrors(),
  };
}

export function describeOperation({ operationId: id, method, path, parameters, requestBody, ...operation }: Operation) {
  const { tags: _, summary: __, deprecated: ___, description, responses, ...rest } = operation;
  const { required = false, content, ...others } = requestBody ?? {};
  expectNone({ ...rest, ...others }, id);
  const key: Field = {
    name: "Authorization",
    in: "header",
    required: true,
    description: apiKey.description,
    schema: {},
  };
  const headers = new Map(Object.values(responses).flatMap(({ headers }) => Object.entries(headers)));
  for (const name of UNLISTED) headers.delete(name);
  return [
    `<p class="request"><code><strong>${method}</strong> ${path}</code> <small>${id}</small></p>`,
    description,
    `### Parameters {#${id}-parameters}`,
    list([key, ...parameters.map((parameter) => ({ required: false, ...parameter }))], id),
    ...Object.values(content ?? {}).flatMap(({ schema }) => [
      `### Body <small>${required ? "required" : "optional"}</small> {#${id}-body}`,
      describeObject(componentOf(schema), id),
    ]),
    `### Responses {#${id}-responses}`,
    describeResponses(responses, id),
    `### Response headers {#${id}-headers}`,
    list(
      Array.from(headers, ([name, { required: _, ...header }]) => ({ name, ...header })),
      `${id}-header`,
    ),
  ].join("\n\n");
}

/** Each success, and links to the errors. */
function describeResponses(responses: Operation["responses"], id: string): string {
  const items: string[] = [];
  const errors: string[] = [];
  for (const [status, { description, headers: _, content, ...rest }] of Object.entries(responses)) {
    expectNone(rest, status);
    const type = content ? typeOf(content["application/json"].schema, status) : ["no body"];
    if (Number(status) < 400) items.push(item(`${id}-${status}`, status, type, description));
    else errors.push(`[${status}](#error-${status})`);
  }
  return [...items, `- Errors: ${errors.join(", ")}`].join("\n");
}

/** The text and the properties of an object. `id`: what they belong to. */
function describeObject(component: string, id: string): string {
  const { type: _, properties = {}, required = [], description, ...rest } = schemas[component] ?? {};
  expectNone(rest, component);
  const fields = Object.entries(properties).map(([name, { description, ...schema }]): Field => {
    return { name, required: required.includes(name), description, schema };
  });
  return `${description}\n\n${list(fields, id)}`;
}

/** A table of the errors of all operations. If their texts about one differ, each text names its operations. */
function describeErrors(): string {
  const rows = Object.entries(STATUS).map(([code, status]) => {
    const textOf = ({ responses }: Operation) => responses[status]?.description ?? "";
    const groups = Object.entries(Object.groupBy(operations.filter(textOf), textOf));
    const texts = groups.map(([text, group = []]) => {
      const links = group.map(({ operationId }) => `[${operationId}](#${operationId})`).join(", ");
      return groups.length === 1 ? text : `${links}: ${text}`;
    });
    return `| ${linkToItself(`error-${status}`, String(status))} | \`${code}\`: ${texts.join("<br>")} |`;
  });
  return ["| Status | Code, cause and remedy |", "|---|---|", ...rows].join("\n");
}

/** What a schema allows, in words. The text of a field says what its pattern requires. */
function typeOf(schema: JsonSchema, name: string): string[] {
  const component = componentOf(schema);
  if (schemas[component]?.type === "object") return [`[${component}](#${component})`];
  const {
    $ref: _,
    examples: __,
    pattern: ___,
    type = "",
    format,
    minimum,
    maximum,
    ...others
  } = {
    ...schemas[component],
    ...schema,
  };
  const { maxLength, items, enum: values, const: only, default: initial, ...rest } = others;
  expectNone(rest, name);
  if (items) return [`Array of ${typeOf(items, name).join(" · ")}`];
  return [
    format === "int64" ? `${type} ([int64](#large-integers-int64))` : values ? "" : type,
    format && format !== "int64" ? format : "",
    minimum === undefined ? "" : maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`,
    maxLength ? `at most ${maxLength.toLocaleString("en")} characters` : "",
    values ? `one of ${values.map((value) => `\`${value}\``).join(", ")}` : "",
    only ? `value \`${only}\`` : "",
    initial === undefined ? "" : `default \`${initial}\``,
  ];
}

const componentOf = ({ $ref = "" }: JsonSchema) => $ref.replace("#/components/schemas/", "");

function list(fields: Field[], id: string): string {
  const items = fields.map(({ name, in: place = "", required, description, schema, example, ...rest }) => {
    expectNone(rest, name);
    const presence = required === undefined ? "" : required ? "required" : "optional";
    const facts = [place, presence, ...typeOf(schema, name), example ? `for example \`${example}\`` : ""];
    return item(`${id}-${name}`, name, facts, description);
  });
  return items.join("\n");
}

const item = (id: string, name: string, facts: string[], text = "") =>
  `- ${linkToItself(id, `<code>${name}</code>`)} <small>${facts.filter(Boolean).join(" · ")}</small>\\\n  ${text}`;

const linkToItself = (id: string, name: string) => `<strong id="${id}"><a href="#${id}">${name}</a></strong>`;

function expectNone(keywords: object, name: string): void {
  const [keyword] = Object.keys(keywords);
  if (keyword) throw new Error(`scripts/build/reference.ts does not show the keyword ${keyword} of ${name}.`);
}
