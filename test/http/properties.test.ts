// Requests generated from the description, over HTTP: of every operation that is described, what it allows is accepted, and
// what it forbids is refused. Every answer must be described, too (send.ts), and a fault of the service would show as a
// 5xx, which no test here expects.

import fc, { type Arbitrary } from "fast-check";
import { afterAll, expect, inject, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import type { Answer } from "../conformance.ts";
import { KEY } from "./dev-server.ts";
import { brokenObject, invalidText, mapValues, only, type Schema, text, valid, validText } from "./generators.ts";
import { send } from "./send.ts";

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  schema: Schema;
}

interface Operation {
  operationId: string;
  parameters: Parameter[];
  requestBody?: { content: { "application/json": { schema: Schema; example: object } } };
  responses: Record<string, { headers: Record<string, { schema: { const?: string } }> }>;
}

const JSON_TYPE = "application/json";

const { paths } = withoutReferences(
  JSON.parse(printJson(description), (_key, value, { source }) => (Number.isInteger(value) ? BigInt(source) : value)),
) as { paths: Record<string, Record<string, Operation>> };

const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    ...operation,
    path,
    method: method.toUpperCase(),
    pathParameters: operation.parameters.filter((parameter) => parameter.in === "path"),
    query: operation.parameters.filter((parameter) => parameter.in === "query"),
    body: operation.requestBody?.content[JSON_TYPE],
  })),
);
type Described = (typeof operations)[number];

const withQuery = operations.filter(({ query }) => query.length > 0);
const withBody = operations.flatMap(({ body, ...operation }) => (body ? [{ ...operation, body }] : []));
const withPathParameters = operations.filter(({ pathParameters }) => pathParameters.length > 0);
const withKey = withBody.filter(({ parameters }) => parameters.some(({ name }) => name === "Idempotency-Key"));

function withoutReferences(document: unknown): unknown {
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== "object" || value === null) return value;
    if (!("$ref" in value)) return mapValues({ ...value }, resolve);
    const [, ...names] = String(value.$ref).split("/");
    return resolve(names.reduce((part, name) => new Map(Object.entries(part ?? {})).get(name), document));
  };
  return resolve(document);
}

interface Request {
  path?: Record<string, string>;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | undefined;
}

let requests = 0;

/** Sends a request to a path under /v1, with the key unless the headers say otherwise. */
function ask(method: string, path: string, { headers, body }: Request = {}): Promise<Answer> {
  requests++;
  const type = body === undefined ? {} : { "Content-Type": JSON_TYPE };
  const options = { method, headers: { ...KEY, ...type, ...headers }, ...(body !== undefined && { body }) };
  return send(`${inject("origin")}/v1${path}`, options);
}

/** Calls the operation, with values that it allows where the request has none. */
function call({ method, path, body }: Described, request: Request = {}, search = new URLSearchParams(request.query)) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(request.path?.[name] ?? "1"));
  const example = body && printJson(body.example);
  return ask(method, search.size > 0 ? `${filled}?${search}` : filled, { body: example, ...request });
}

/** Checks `holds` with `runs` generated inputs; what takes too long fails, and ends. */
const always = <T>(runs: number, inputs: Arbitrary<T>, holds: (input: T) => Promise<void>) =>
  fc.assert(fc.asyncProperty(inputs, holds), {
    numRuns: runs,
    interruptAfterTimeLimit: 50_000,
    markInterruptAsFailure: true,
  });

const valuesOf = (parameters: Parameter[]): Arbitrary<Record<string, string>> =>
  fc.record(Object.fromEntries(parameters.map(({ name, schema }) => [name, validText(schema, name)])));

const someOf = (parameters: Parameter[]) => fc.subarray(parameters).chain(valuesOf);

const fault = ({ text }: Answer): string => JSON.parse(text).message;

/** The statuses of requests that are allowed: nothing may be at the path. */
const accepted = ({ path, responses }: Described) =>
  Object.keys(responses)
    .filter((status) => status.startsWith("2") || (status === "404" && path.includes("{")))
    .map(Number);

it.each(operations)("$operationId accepts every valid request, and does what it says", (operation) => {
  const { pathParameters, query, body, operationId } = operation;
  const request = fc.record({
    path: valuesOf(pathParameters),
    query: someOf(query),
    body: body ? valid(body.schema, `the body of ${operationId}`) : fc.constant(undefined),
  });
  return always(300, request, async (sent) => {
    const answer = await call(operation, sent);
    expect(accepted(operation)).toContain(answer.status);
    if (answer.status === 200) expectFiltered(JSON.parse(answer.text), sent.query, query);
    if (answer.status === 201) {
      expect(JSON.parse(answer.text)).toMatchObject(JSON.parse(sent.body ?? ""));
      await expectKept(answer);
    }
  });
});

/** Asserts that a list is no longer than its limit, and holds only what was asked for. */
function expectFiltered(answered: unknown, asked: Record<string, string>, query: Parameter[]): void {
  if (!Array.isArray(answered)) return;
  const limit =
    asked["limit"] ?? query.find(({ name }) => name === "limit")?.schema.default ?? Number.POSITIVE_INFINITY;
  expect(answered.length).toBeLessThanOrEqual(Number(limit));
  const filters = Object.entries(asked);
  for (const item of answered)
    for (const [name, value] of filters) if (name in item) expect(String(item[name])).toBe(value);
}

/** Asserts that what was created is found where its Location says, if there is an operation for that. */
async function expectKept({ headers, text }: Answer): Promise<void> {
  const path = String(headers.get("Location")).replace("/v1", "");
  const readable = Object.keys(paths).some(
    (template) => paths[template]?.["get"] && RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path),
  );
  if (readable) expect(await ask("GET", path)).toMatchObject({ status: 200, text });
}

it.each(withQuery)("$operationId refuses a query in which one parameter is invalid", (operation) => {
  const wrong = operation.query.map(({ name, schema }) => fc.tuple(fc.constant(name), invalidText(schema, name)));
  return always(300, fc.tuple(someOf(operation.query), fc.oneof(...wrong)), async ([query, [name, value]]) => {
    const answer = await call(operation, { query: { ...query, [name]: value } });
    expect(answer.status).toBe(400);
    expect(fault(answer)).toContain(`${name} must be `);
  });
});

it.each(withQuery)("$operationId refuses an unknown parameter", (operation) => {
  const unknown = only(text, "an unknown name", (name) => !operation.query.some((known) => known.name === name));
  return always(200, fc.tuple(someOf(operation.query), unknown, text), async ([query, name, value]) => {
    const search = new URLSearchParams(query);
    search.append(name, value);
    const answer = await call(operation, {}, search);
    expect(answer.status).toBe(400);
    expect(fault(answer)).toContain("unknown query parameter");
  });
});

it.each(withQuery)("$operationId refuses a repeated parameter", (operation) =>
  always(
    100,
    fc.tuple(someOf(operation.query), fc.constantFrom(...operation.query), text),
    async ([query, { name }, value]) => {
      const search = new URLSearchParams({ ...query, [name]: value });
      search.append(name, value);
      const answer = await call(operation, {}, search);
      expect(answer.status).toBe(400);
      expect(fault(answer)).toContain(`${name} must be given only once`);
    },
  ),
);

it.each(withBody)("$operationId refuses a body in which a property is missing or invalid", (operation) => {
  const { schema } = operation.body;
  const names = Object.keys(schema.properties ?? {}).join("|");
  return always(300, brokenObject(schema), async (body) => {
    const answer = await call(operation, { body });
    expect(answer.status).toBe(400);
    expect(fault(answer)).toMatch(RegExp(`^(${names}) (is required and )?must be `));
  });
});

it.each(withBody)("$operationId refuses every other JSON, and what is no JSON", (operation) => {
  const other = only(fc.json(), "no object", (json) => !json.startsWith("{"));
  return always(200, fc.oneof(other, text), async (body) => {
    expect((await call(operation, { body })).status).toBe(400);
  });
});

it.each(withBody)("$operationId refuses every other media type", (operation) => {
  const token = fc.string({ unit: fc.constantFrom(..."abcdejnosx.+-"), minLength: 1 });
  const types = fc.tuple(token, token).map((parts) => parts.join("/"));
  const others = only(types, "another type", (type) => !type.endsWith("+json") && type !== JSON_TYPE);
  return always(100, others, async (type) => {
    expect((await call(operation, { headers: { "Content-Type": type } })).status).toBe(415);
  });
});

it.each(withPathParameters)("$operationId finds nothing under what is no identifier", (operation) => {
  const wrong = operation.pathParameters.map(({ name, schema }) =>
    fc.tuple(fc.constant(name), invalidText(schema, name)),
  );
  const segment = only(fc.oneof(...wrong), "a segment", ([, value]) => !["", ".", ".."].includes(value));
  return always(200, fc.tuple(valuesOf(operation.pathParameters), segment), async ([path, [name, value]]) => {
    expect((await call(operation, { path: { ...path, [name]: value } })).status).toBe(404);
  });
});

// Those that the runtime knows; it refuses all others itself.
const METHODS = "GET HEAD POST PUT PATCH DELETE TRACE COPY LOCK MKCOL MOVE PROPFIND PURGE".split(" ");

it.each(Object.entries(paths))("%s answers every other method with 405 and Allow", (path, item) => {
  const [described] = Object.values(item);
  const allow = described?.responses["405"]?.headers["Allow"]?.schema.const ?? "";
  const others = METHODS.filter((method) => !allow.split(", ").includes(method));
  return always(100, fc.constantFrom(...others), async (method) => {
    const { status, headers } = await ask(method, path.replaceAll(/\{\w+\}/g, "1"));
    expect(status).toBe(405);
    expect(headers.get("Allow")).toBe(allow);
  });
});

// As HTTP carries them: without white space at either end.
const trimmed = (values: Arbitrary<string>) => only(values, "trimmed", (value) => value.trim() === value);
const headerText = (from: number, to: number) =>
  trimmed(
    fc.string({ unit: fc.integer({ min: from, max: to }).map((code) => String.fromCharCode(code)), maxLength: 300 }),
  );
const anyHeader = fc.oneof(headerText(0x20, 0x7e), headerText(0xa1, 0xff));

it.each(withKey)("$operationId accepts every Idempotency-Key, and creates one under it", (operation) => {
  const { body, parameters, operationId } = operation;
  const key = fc.oneof(
    ...schemasOf(parameters, "Idempotency-Key").map((schema) => trimmed(validText(schema, "the key"))),
  );
  return always(100, fc.tuple(key, valid(body.schema, `the body of ${operationId}`)), async ([value, text]) => {
    const request = { headers: { "Idempotency-Key": value }, body: text };
    const first = await call(operation, request);
    expect([201, 422]).toContain(first.status); // 422 where the key was generated before
    expect(await call(operation, request)).toMatchObject({ status: first.status, text: first.text });
  });
});

it.each(withKey)("$operationId refuses every other Idempotency-Key", (operation) => {
  const pattern = RegExp(schemasOf(operation.parameters, "Idempotency-Key")[0]?.pattern ?? "");
  const wrong = only(fc.oneof(anyHeader, fc.constant("a,b")), "no key", (value) => !pattern.test(value));
  return always(100, wrong, async (value) => {
    expect((await call(operation, { headers: { "Idempotency-Key": value } })).status).toBe(400);
  });
});

const schemasOf = (parameters: Parameter[], wanted: string) =>
  parameters.flatMap(({ name, schema }) => (name === wanted ? [schema] : []));

it.each(operations)("$operationId accepts every x-d1-bookmark", (operation) =>
  always(100, anyHeader, async (value) => {
    const { status } = await call(operation, { headers: { "x-d1-bookmark": value } });
    expect(accepted(operation)).toContain(status);
  }),
);

it("nobody is admitted without the key", () => {
  const known = operations.map((operation) => (headers: Record<string, string>) => call(operation, { headers }));
  const unknown = ["/nothing", ""].map((path) => (headers: Record<string, string>) => ask("GET", path, { headers }));
  const credentials = headerText(0x20, 0x7e).chain((token) =>
    fc.constantFrom(token, `Bearer ${token}`, `Basic ${token}`),
  );
  const wrong = only(trimmed(credentials), "wrong", (value) => !/^bearer +local-key$/i.test(value));
  return always(200, fc.tuple(fc.constantFrom(...known, ...unknown), wrong), async ([send, Authorization]) => {
    expect((await send({ Authorization })).status).toBe(401);
  });
});

afterAll(() => {
  expect(requests).toBeGreaterThanOrEqual(2_000);
});
