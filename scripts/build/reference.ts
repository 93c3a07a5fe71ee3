// The operations as Markdown, made from the OpenAPI description. What all operations share is shown once. A keyword of an
// operation, a parameter, a response or a schema that the page does not show stops the build.

import { isDeepStrictEqual } from "node:util";
import { description } from "../../src/openapi/document.ts";
import type { JsonSchema, Parameter } from "../../src/openapi/schemas.ts";
import { printJson } from "../../src/values/json.ts";

const COMPONENTS = "#/components/schemas/";
const BASE = description.servers.map(({ url }) => url).join();
const { apiKey } = description.components.securitySchemes;
const schemas: Record<string, JsonSchema> = description.components.schemas;

/** Each with its method and path. */
export const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
);
type Operation = (typeof operations)[number];
type Response = Operation["responses"][string];
/** A parameter, a header or a property. */
type Field = Omit<Parameter, "in" | "description"> & { in?: string | undefined; description?: string | undefined };

const shared = {
  parameters: inAll(operations.map(({ parameters }) => parameters)),
  responses: inAll(operations.map(({ responses }) => Object.entries(responses))),
  headers: inAll(operations.map(headersOf)),
};
const inEveryResponse = inAll(
  operations.flatMap(({ responses }) => Object.values(responses).map(({ headers }) => Object.entries(headers))),
);

/** The operations, what all of them share, and the objects in responses. Throws an error that names what it does not show. */
export function describeOperations(): string {
  const key = item("Authorization", ["header", "required", `${apiKey.type} ${apiKey.scheme}`], apiKey.description);
  const sent = operations.map((operation) => bodyOf(operation)?.schema.$ref);
  const objects = Object.keys(schemas).filter((name) => isObject(name) && !sent.includes(COMPONENTS + name));
  return [
    ...operations.map(describeOperation),
    `<section>\n\n<h2 id="all-operations">All operations</h2>`,
    `Paths are relative to the base URL of the service, which ends in ${code(BASE)}. Bodies are JSON.`,
    ...list("all-operations-parameters", "Parameters", [key, ...shared.parameters.map(describeField)]),
    ...list("all-operations-responses", "Responses", shared.responses.map(describeResponse)),
    ...list("all-operations-headers", "Response headers", shared.headers.map(describeField)),
    `Every response has ${inEveryResponse.map(([name]) => code(name)).join(", ")}.\n\n</section>`,
    `<section>\n\n<h2 id="objects">Objects</h2>`,
    ...objects.flatMap((name) => [`<h3 id="${name}">${name}</h3>`, ...describeObject(name)]),
    "</section>",
  ].join("\n\n");
}

export function describeOperation(operation: Operation): string {
  const { operationId: id, tags: _, summary, description, deprecated, method, path, ...parts } = operation;
  const { parameters, requestBody, responses, ...rest } = parts;
  const { required, content, ...others } = requestBody ?? {};
  const { $ref: body, ...inline } = content?.["application/json"].schema ?? {};
  expectNone({ ...rest, ...others, ...inline }, id);
  const bodyTitle = `<h3 id="${id}-body">Body <small>${required ? "required" : "optional"}</small></h3>`;
  return [
    `<section data-request="${escaped(printJson(requestOf(operation)))}">`,
    `<h2 id="${id}">${summary}${deprecated ? " <mark>Deprecated</mark>" : ""}</h2>`,
    `<p><code><strong>${method}</strong> ${path}</code> <small>${id}</small></p>`,
    description,
    `\`\`\`sh\n${curlExample(operation)}\n\`\`\``,
    ...list(`${id}-parameters`, "Parameters", without(shared.parameters, parameters).map(describeField)),
    ...(body ? [bodyTitle, ...describeObject(body.replace(COMPONENTS, ""), "body")] : []),
    ...list(`${id}-responses`, "Responses", without(shared.responses, Object.entries(responses)).map(describeResponse)),
    ...list(`${id}-headers`, "Response headers", without(shared.headers, headersOf(operation)).map(describeField)),
    "For the API key and everything else that operations share, see [All operations](#all-operations).\n\n</section>",
  ].join("\n\n");
}

function curlExample({ method, path, parameters, ...operation }: Operation): string {
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name) => String(parameters.find((p) => p.name === name)?.example));
  const body = printJson(bodyOf(operation)?.example)?.replaceAll("'", "'\\''");
  return [
    `curl --fail-with-body --max-time 30 "$ANIMAL_STORE${url}"`,
    ...(/GET|POST/.test(method) ? [] : [`-X ${method}`]),
    `-H "Authorization: Bearer $API_KEY"`,
    ...(body ? [`-H "Content-Type: application/json"`, `-d '${body}'`] : []),
  ].join(" \\\n  ");
}

/** What forms.js makes a form from. */
function requestOf({ method, path, parameters, responses, ...operation }: Operation) {
  const fields = parameters.map(({ description: _, ...field }) => ({ ...field, schema: resolved(field.schema) }));
  const headers = new Set(Object.values(responses).flatMap((response) => Object.keys(response.headers)));
  return { method, path: BASE + path, fields, body: printJson(bodyOf(operation)?.example, 2), headers: [...headers] };
}

function describeResponse([status, { description, headers, content, ...rest }]: [string, Response]): string {
  expectNone(rest, status);
  const own = without(inEveryResponse, Object.entries(headers));
  const names = own.map(([name, { required }]) => code(name) + (required ? "" : " (may be absent)"));
  const { schema, example } = content?.["application/json"] ?? {};
  const facts = [...(schema ? typeOf(schema, status) : ["no body"]), names[0] && `headers: ${names.join(", ")}`];
  return item(status, facts, description) + (schema ? `\n\n  \`\`\`\n  ${printJson(example)}\n  \`\`\`` : "");
}

/** What the operation's responses define headers to be, each definition once. */
function headersOf({ responses }: Operation): Field[] {
  const headers = Object.values(responses).flatMap(({ headers }) =>
    Object.entries(headers).map(([name, { required: _, ...header }]) => ({ name, ...header })),
  );
  return headers.filter((header, index) => !has(headers.slice(0, index), header));
}

/** A component that is an object or an array. The properties of an object in a request have a place: its body. */
function describeObject(component: string, place?: string): string[] {
  const { type: _, items, properties = {}, required = [], description, ...rest } = schemas[component] ?? {};
  expectNone(rest, component);
  const fields = Object.entries(properties).map(([name, { description, ...schema }]) =>
    describeField({ name, in: place, required: required.includes(name), description, schema }),
  );
  return [`${items ? `${typeOf({ items }, component)}. ` : ""}${description}`, fields.join("\n")];
}

function describeField({ name, in: place, required, description, schema, example, ...rest }: Field): string {
  expectNone(rest, name);
  const presence = place ? (required ? "required" : "optional") : required === false ? "may be absent" : "";
  const shown = example === undefined ? "" : `for example ${code(String(example))}`;
  return item(name, [place, presence, ...typeOf(schema, name), shown], description);
}

/** What a schema allows, in words. */
function typeOf(schema: JsonSchema, name: string): string[] {
  const component = schema.$ref?.replace(COMPONENTS, "") ?? "";
  if (isObject(component)) return [`[${code(component)}](#${component})`];
  const { type, format, minimum, maximum, pattern, items, enum: values, const: only, ...others } = resolved(schema);
  const { maxLength, default: initial, examples: _, ...rest } = others;
  expectNone(rest, name);
  if (items) return [`Array of ${typeOf(items, name)}`];
  return [
    format ? `${type} (${format})` : `${type}`,
    minimum === undefined ? "" : `at least ${minimum}`,
    maximum === undefined ? "" : `at most ${maximum}`,
    maxLength === undefined ? "" : `at most ${maxLength} characters`,
    // The pattern of a format, such as date, is long and says nothing more.
    pattern && !format ? `matches ${code(pattern)}` : "",
    values ? `one of ${values.map(code).join(", ")}` : "",
    only === undefined ? "" : `always ${code(String(only))}`,
    initial === undefined ? "" : `default ${code(String(initial))}`,
  ];
}

const isObject = (component: string) => /object|array/.test(schemas[component]?.type ?? "");

const resolved = ({ $ref, ...schema }: JsonSchema) => ({ ...schemas[$ref?.replace(COMPONENTS, "") ?? ""], ...schema });

const bodyOf = ({ requestBody }: Pick<Operation, "requestBody">) => requestBody?.content["application/json"];

const list = (id: string, title: string, items: string[]) =>
  items.length > 0 ? [`<h3 id="${id}">${title}</h3>`, items.join("\n")] : [];

const item = (name: string, facts: (string | undefined)[], text = "") =>
  `- **${code(name)}** <small>${facts.filter(Boolean).join(" · ")}</small>\\\n  ${text}`;

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
