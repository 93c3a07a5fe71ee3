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
type Field = { description?: string | undefined; schema: JsonSchema; example?: unknown };

/** What the guide can refer to by its name: operations, objects, and `errors`. */
export function describeAll(): Map<string, string> {
  return new Map([
    ...operations.map((operation) => [operation.operationId, describeOperation(operation)] as const),
    ...Object.keys(schemas).flatMap((name) => (isObject(name) ? [[name, describeObject(name, name)] as const] : [])),
    ["errors", describeErrors()],
  ]);
}

export function describeOperation({ operationId: id, method, path, parameters, requestBody, ...operation }: Operation) {
  const { tags: _, summary: __, deprecated: ___, description, responses, ...rest } = operation;
  const { required: isRequired, content, ...others } = requestBody ?? {};
  expectNone({ ...rest, ...others }, id);
  const key = { name: "Authorization", in: "header", required: true, description: apiKey.description, schema: {} };
  const headers = new Map(Object.values(responses).flatMap(({ headers }) => Object.entries(headers)));
  for (const name of UNLISTED) headers.delete(name);
  return [
    `<p class="request"><code><strong>${method}</strong> ${path}</code> <small>${id}</small></p>`,
    description,
    `### Parameters {#${id}-parameters}`,
    [key, ...parameters]
      .map(({ name, in: place, required, ...field }) => describeField(id, name, [place, presence(required)], field))
      .join("\n"),
    ...(content ? [`### Body <small>${presence(isRequired)}</small> {#${id}-body}`] : []),
    ...(content ? [describeObject(nameOf(content["application/json"].schema), id)] : []),
    `### Responses {#${id}-responses}`,
    describeResponses(id, responses),
    `### Response headers {#${id}-headers}`,
    Array.from(headers, ([name, { required: _, ...field }]) => describeField(`${id}-header`, name, [], field)).join(
      "\n",
    ),
  ].join("\n\n");
}

/** Each success, and links to the errors. */
function describeResponses(id: string, responses: Operation["responses"]): string {
  const [errors, successes] = [[] as string[], [] as string[]];
  for (const [status, { description, headers: _, content, ...rest }] of Object.entries(responses)) {
    expectNone(rest, status);
    const type = content ? typeOf(content["application/json"].schema, status) : "no body";
    if (Number(status) >= 400) errors.push(`[${status}](#error-${status})`);
    else successes.push(item(`${id}-${status}`, status, [type], description));
  }
  return [...successes, `- Errors: ${errors.join(", ")}`].join("\n");
}

/** The text and the properties of an object. `id`: what they belong to. */
function describeObject(component: string, id: string): string {
  const { type: _, properties = {}, required = [], description, ...rest } = schemas[component] ?? {};
  expectNone(rest, component);
  const fields = Object.entries(properties).map(([name, { description, ...schema }]) =>
    describeField(id, name, [presence(required.includes(name))], { description, schema }),
  );
  return `${description}\n\n${fields.join("\n")}`;
}

/** A parameter, a property or a response header. */
function describeField(id: string, name: string, facts: string[], { description, schema, example, ...rest }: Field) {
  expectNone(rest, name);
  const shown = example === undefined ? "" : `for example \`${example}\``;
  return item(`${id}-${name}`, name, [...facts, typeOf(schema, name), shown], description);
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
function typeOf(schema: JsonSchema, name: string): string {
  const component = nameOf(schema);
  if (isObject(component)) return `[${component}](#${component})`;
  const {
    type,
    format,
    minimum,
    maximum,
    maxLength,
    items,
    enum: values,
    ...others
  } = { ...schemas[component], ...schema };
  const { const: only, default: initial, examples: _, pattern: __, $ref: ___, ...rest } = others;
  expectNone(rest, name);
  const facts = [
    items ? `Array of ${typeOf(items, name)}` : values ? `one of ${values.map(code).join(", ")}` : type,
    format === "int64" ? "[int64](#large-integers-int64)" : format,
    minimum !== undefined && `at least ${minimum}`,
    maximum !== undefined && `at most ${maximum}`,
    maxLength && `at most ${maxLength.toLocaleString("en")} characters`,
    only && code(only),
    initial !== undefined && `default ${code(String(initial))}`,
  ];
  return facts.filter(Boolean).join(" · ");
}

const code = (text: string) => `\`${text}\``;
const presence = (isRequired = false) => (isRequired ? "required" : "optional");
const nameOf = ({ $ref = "" }: JsonSchema) => $ref.replace("#/components/schemas/", "");
const isObject = (component: string) => schemas[component]?.type === "object";
const linkToItself = (id: string, name: string) => `<strong id="${id}"><a href="#${id}">${name}</a></strong>`;

const item = (id: string, name: string, facts: string[], text = "") =>
  `- ${linkToItself(id, `<code>${name}</code>`)} <small>${facts.filter(Boolean).join(" · ")}</small>\\\n  ${text}`;

function expectNone(keywords: object, name: string): void {
  const [keyword] = Object.keys(keywords);
  if (keyword) throw new Error(`scripts/build/reference.ts does not show the keyword ${keyword} of ${name}.`);
}
