// The operations as Markdown, made from the OpenAPI description. What operations share is shown once. A keyword of an
// operation, a parameter, a response or a schema that the page does not show stops the build.

import { isDeepStrictEqual } from "node:util";
import { STATUS } from "../../src/http/errors.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { KEY_NAME_HEADER, VERSION_HEADER } from "../../src/http/responses.ts";
import { description } from "../../src/openapi/document.ts";
import type { JsonSchema, Parameter } from "../../src/openapi/schemas.ts";
import { printJson } from "../../src/values/json.ts";
import { examples } from "./examples.ts";

const COMPONENTS = "#/components/schemas/";
const BASE = description.servers.map(({ url }) => url).join();
const ALL = "all-operations";
/** Response headers of which callers need no description: the methods of a path, and what operators need. */
const UNLISTED = ["Allow", VERSION_HEADER];
/** Not repeated for each response. */
const ON_ALL_RESPONSES = [KEY_NAME_HEADER, VERSION_HEADER];
const { apiKey } = description.components.securitySchemes;
const schemas: Record<string, JsonSchema> = description.components.schemas;

/** Each with its method and path. */
export const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
);
type Operation = (typeof operations)[number];
type Response = [status: string, Operation["responses"][string]];
/** A parameter, a header or a property. */
type Field = Omit<Parameter, "in" | "description"> & { in?: string | undefined; description?: string | undefined };

/** What every operation, parameter or response has in common is described once. */
const key = {
  name: "Authorization",
  in: "header",
  required: true,
  description: apiKey.description,
  schema: { type: "string", format: apiKey.scheme },
} satisfies Field;
const shared = {
  parameters: [key, ...inAll(operations.map(({ parameters }) => parameters))],
  headers: inAll(operations.map(headersOf)),
};

/** The operations, what they share, and the objects in responses. Throws an error that names what it does not show. */
export function describeOperations(): string {
  const sent = operations.map((operation) => bodyOf(operation)?.schema.$ref);
  const objects = Object.keys(schemas).filter((name) => isObject(name) && !sent.includes(COMPONENTS + name));
  return [
    ...operations.map(describeOperation),
    `## All operations {#${ALL}}`,
    `Paths are relative to the base URL of the service, which ends in ${code(BASE)}. Bodies are JSON.`,
    ...list("Parameters", `${ALL}-parameters`, describeFields(shared.parameters, ALL)),
    ...describeHeaders(shared.headers, ALL),
    "## Objects",
    ...objects.flatMap((name) => ["---", `### ${name} {#${name}}`, ...describeObject(name), json(exampleOf(name))]),
  ].join("\n\n");
}

export function describeOperation(operation: Operation): string {
  const { operationId: id, tags: _, summary, description, deprecated, method, path, ...parts } = operation;
  const { parameters, requestBody, responses, ...rest } = parts;
  const { required, content, ...otherKeywords } = requestBody ?? {};
  const { $ref: body, ...inline } = content?.["application/json"].schema ?? {};
  expectNone({ ...rest, ...otherKeywords, ...inline }, id);
  const bodyTitle = `### Body <small>${required ? "required" : "optional"}</small> {#${id}-body}`;
  const request = escaped(printJson(requestOf(operation)));
  const others = shared.parameters.map(({ name }) => `[${code(name)}](#${ALL}-${name})`);
  return [
    `## ${titleOf(operation)} {#${id}}`,
    `<p class="request" data-request="${request}">
<code><strong>${method}</strong> ${path}</code> <small>${id}</small></p>`,
    description,
    ...exampleWithResponse(operation),
    ...list("Parameters", `${id}-parameters`, [
      ...describeFields(without(shared.parameters, parameters), id),
      `- As for every operation: ${others.join(", ")}`,
    ]),
    ...(body ? [bodyTitle, ...describeObject(body.replace(COMPONENTS, ""), id, "body")] : []),
    ...list("Responses", `${id}-responses`, describeResponses(Object.entries(responses), id)),
    ...describeHeaders(without(shared.headers, headersOf(operation)), id),
    `For the headers that operations share, see [All operations](#${ALL}).`,
  ].join("\n\n");
}

const list = (title: string, id: string, items: string[]) =>
  items.length > 0 ? [`### ${title} {#${id}}`, items.join("\n")] : [];

export const titleOf = ({ summary, deprecated }: Pick<Operation, "summary" | "deprecated">) =>
  summary + (deprecated ? " <mark>Deprecated</mark>" : "");

/** The programs that call the operation, and its first response that is a success. */
function exampleWithResponse({ operationId, method, path, parameters, responses, ...operation }: Operation): string[] {
  const [status = "", success] = Object.entries(responses).find(([status]) => status.startsWith("2")) ?? [];
  const example = success?.content?.["application/json"].example;
  const call = {
    method,
    path: path.replaceAll(/\{(\w+)\}/g, (_, name) => String(parameters.find((p) => p.name === name)?.example)),
    body: bodyOf(operation)?.example,
    hasIdempotencyKey: parameters.some(({ name }) => name === IDEMPOTENCY_HEADER),
    status,
    start: /^(\[|.*?:)/.exec(printJson(example) ?? "")?.[0],
  };
  const again = "If the example fails, run it again with [the same key](#running-the-examples):";
  return [
    ...(call.hasIdempotencyKey ? [again] : []),
    examples(call),
    ...(example ? [`The response, [${status}](#${operationId}-${status}):`, json(example)] : []),
  ];
}

/** What forms.js makes a form from. */
function requestOf({ method, path, parameters, responses, ...operation }: Operation) {
  const fields = parameters.map((field) => {
    const { name, in: place, required, schema } = field;
    const hint = inRow(factsOf(field)).replaceAll(/[`[]|\]\(.*?\)/g, "");
    return { name, place, required, hint, values: resolved(schema).enum };
  });
  const headers = new Set(headersOf({ responses }).map(({ name }) => name));
  return { method, path: BASE + path, fields, body: printJson(bodyOf(operation)?.example, 2), headers: [...headers] };
}

/** Each success, and links to the errors, which the table describes. */
function describeResponses(responses: Response[], id: string): string[] {
  const errors = responses.filter(isError).map(([status]) => `[${status}](#error-${status})`);
  const successes = responses.filter((response) => !isError(response));
  return [
    ...successes.map((response) => describeSuccess(response, id)),
    ...(errors.length > 0 ? [`- Errors: ${errors.join(", ")}`] : []),
  ];
}

const isError = ([status]: Response) => Number(status) >= 400;

function describeSuccess([status, { description, headers, content, ...rest }]: Response, id: string): string {
  expectNone(rest, status);
  const own = Object.entries(headers).filter(([name]) => !ON_ALL_RESPONSES.includes(name));
  const names = own.map(([name, { required }]) => code(name) + (required ? "" : " (may be absent)"));
  const schema = content?.["application/json"].schema;
  const facts = [...(schema ? typeOf(schema, status) : ["no body"]), names[0] && `headers: ${names.join(", ")}`];
  return item(`${id}-${status}`, status, facts, description);
}

/** A table of the errors of all operations. Where their texts about one differ, each text names its operations. */
export function errorTable(): string {
  const rows = Object.entries(STATUS).map(([name, status]) => {
    const textOf = ({ responses }: Operation) => responses[status]?.description ?? "";
    const groups = Object.entries(Object.groupBy(operations.filter(textOf), textOf));
    const texts = groups.map(([text, group = []]) => {
      const links = group.map(({ operationId: id }) => `[${id}](#${id})`);
      return groups.length === 1 ? text : `${links.join(", ")}: ${text}`;
    });
    const link = `<strong id="error-${status}"><a href="#error-${status}">${status}</a></strong>`;
    return `| ${link} | ${code(name)}: ${texts.join("<br>")} |`;
  });
  return ["| Status | Code, cause and remedy |", "|---|---|", ...rows].join("\n");
}

/** What the operation's responses define headers to be, each definition once. */
function headersOf({ responses }: Pick<Operation, "responses">): Field[] {
  const headers = Object.values(responses).flatMap(({ headers }) =>
    Object.entries(headers).map(([name, { required: _, ...header }]) => ({ name, ...header })),
  );
  const listed = headers.filter(({ name }) => !UNLISTED.includes(name));
  return listed.filter((header, index) => !has(listed.slice(0, index), header));
}

/** Headers are text, so only other types are worth saying. */
function describeHeaders(headers: Field[], operation: string): string[] {
  const id = `${operation}-headers`;
  const fields = headers.map(({ schema, ...header }) => {
    const { type, ...others } = schema;
    return { ...header, schema: type === "string" ? others : schema };
  });
  return list("Response headers", id, describeFields(fields, id));
}

const describeFields = (fields: Field[], id: string) => fields.map((field) => describeField(field, id));

/** A component that is an object or an array. The properties of an object in a request have a place: its body. */
function describeObject(component: string, id = component, place?: string): string[] {
  const { type: _, items, properties = {}, required = [], description, ...rest } = schemas[component] ?? {};
  expectNone(rest, component);
  const fields = Object.entries(properties).map(([name, { description, ...schema }]) =>
    describeField({ name, in: place, required: required.includes(name), description, schema }, id),
  );
  return [`${items ? `${inRow(typeOf({ items }, component))}. ` : ""}${description}`, fields.join("\n")];
}

function exampleOf(component: string): unknown {
  const { items, properties = {} } = schemas[component] ?? {};
  if (items?.$ref) return [exampleOf(items.$ref.replace(COMPONENTS, ""))];
  return Object.fromEntries(Object.entries(properties).map(([name, { examples }]) => [name, examples?.[0]]));
}

function describeField(field: Field, id: string): string {
  const { name, in: _place, required: _required, schema: _schema, description, example, ...rest } = field;
  expectNone(rest, name);
  const shown = example === undefined ? "" : `for example ${code(String(example))}`;
  return item(`${id}-${name}`, name, [...factsOf(field), shown], description);
}

/** Where a field is, whether it is required, and what it may contain. */
function factsOf({ name, in: place, required, schema }: Field): string[] {
  const presence = place ? (required ? "required" : "optional") : required === false ? "may be absent" : "";
  return [place === "body" ? "" : (place ?? ""), presence, ...typeOf(schema, name)];
}

/** What a schema allows, in words. The text of a field says what its pattern requires. */
function typeOf(schema: JsonSchema, name: string): string[] {
  const component = schema.$ref?.replace(COMPONENTS, "") ?? "";
  if (isObject(component)) return [`[${code(component)}](#${component})`];
  const { type, format, minimum, maximum, maxLength, items, enum: values, ...others } = resolved(schema);
  const { const: only, default: initial, examples: _, pattern: __, ...rest } = others;
  expectNone(rest, name);
  if (items) return [`Array of ${inRow(typeOf(items, name))}`];
  const isInt64 = format === "int64";
  return [
    isInt64 ? `${type} ([int64](#large-integers-int64))` : format ? `${type} (${format})` : values ? "" : (type ?? ""),
    minimum === undefined ? "" : maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`,
    maximum === undefined || minimum !== undefined ? "" : `at most ${maximum}`,
    maxLength ? `at most ${maxLength.toLocaleString("en")} characters` : "",
    values ? `one of ${values.map(code).join(", ")}` : "",
    only === undefined ? "" : `value ${code(String(only))}`,
    initial === undefined ? "" : `default ${code(String(initial))}`,
  ];
}

const isObject = (component: string) => schemas[component]?.type === "object";

const resolved = ({ $ref, ...schema }: JsonSchema) => ({ ...schemas[$ref?.replace(COMPONENTS, "") ?? ""], ...schema });

const bodyOf = ({ requestBody }: Pick<Operation, "requestBody">) => requestBody?.content["application/json"];

const inRow = (facts: (string | undefined)[]) => facts.filter(Boolean).join(" · ");

function item(id: string, name: string, facts: (string | undefined)[], text = ""): string {
  const link = `<strong id="${id}"><a href="#${id}"><code>${name}</code></a></strong>`;
  const line = `${link} <small>${inRow(facts)}</small>`;
  return `- ${line}\\\n  ${text}`;
}

const json = (value: unknown) => `\`\`\`json\n${printJson(value, 2)}\n\`\`\``;

const code = (text: string) => `\`${text}\``;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");

const without = <T>(others: T[], list: T[]) => list.filter((part) => !has(others, part));

/** The parts that are in every list. */
function inAll<T>([first = [], ...others]: T[][]): T[] {
  return first.filter((part) => others.every((list) => has(list, part)));
}

function has<T>(list: T[], part: T): boolean {
  return list.some((other) => isDeepStrictEqual(other, part));
}

function expectNone(keywords: object, name: string): void {
  const [keyword] = Object.keys(keywords);
  if (keyword) throw new Error(`scripts/build/reference.ts does not show the keyword ${keyword} of ${name}.`);
}
