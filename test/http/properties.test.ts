// Requests generated from the description, over HTTP: every operation accepts what its description allows and rejects what
// it forbids. Every response must be described too (send.ts), and no test here expects a 5xx.

import fc, { type Arbitrary } from "fast-check";
import { afterAll, expect, inject, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { mapValues } from "../../src/openapi/schemas.ts";
import { printJson } from "../../src/values/json.ts";
import type { Answer } from "../conformance.ts";
import { KEY } from "./dev-server.ts";
import { brokenObject, invalidText, only, type Schema, text, valid, validText } from "./generators.ts";
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
const CALLERS = 10;

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

/** Sends a request to a path under /v1, with the key unless the headers replace it. */
function request(method: string, path: string, { headers, body }: Request = {}): Promise<Answer> {
  requests++;
  const type = body === undefined ? {} : { "Content-Type": JSON_TYPE };
  const options = { method, headers: { ...KEY, ...type, ...headers }, ...(body !== undefined && { body }) };
  return send(`${inject("origin")}/v1${path}`, options);
}

/** Calls the operation. Parts of the request that `parts` omits have valid values. */
function call({ method, path, body }: Described, parts: Request = {}, search = new URLSearchParams(parts.query)) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parts.path?.[name] ?? "1"));
  const example = body && printJson(body.example);
  return request(method, search.size > 0 ? `${filled}?${search}` : filled, { body: example, ...parts });
}

/** Checks `holds` with `runs` generated inputs, several at a time. A property that takes too long fails. */
async function always<T>(runs: number, inputs: Arbitrary<T>, holds: (input: T) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(inputs, holds);
  const options = { numRuns: runs / CALLERS, interruptAfterTimeLimit: 50_000, markInterruptAsFailure: true };
  await Promise.all(Array.from({ length: CALLERS }, () => fc.assert(property, options)));
}

const valuesOf = (parameters: Parameter[]): Arbitrary<Record<string, string>> =>
  fc.record(Object.fromEntries(parameters.map(({ name, schema }) => [name, validText(schema, name)])));

const someOf = (parameters: Parameter[]) => fc.subarray(parameters).chain(valuesOf);

const messageOf = ({ text }: Answer): string => JSON.parse(text).message;

/** The statuses of valid requests. A path with a parameter can be a 404. */
const accepted = ({ path, responses }: Described) =>
  Object.keys(responses)
    .filter((status) => status.startsWith("2") || (status === "404" && path.includes("{")))
    .map(Number);

it.each(operations)("$operationId accepts every valid request and does what its description says", (operation) => {
  const { pathParameters, query, body, operationId } = operation;
  const valids = fc.record({
    path: valuesOf(pathParameters),
    query: someOf(query),
    body: body ? valid(body.schema, `the body of ${operationId}`) : fc.constant(undefined),
  });
  return always(300, valids, async (sent) => {
    const answer = await call(operation, sent);
    expect(accepted(operation)).toContain(answer.status);
    if (answer.status === 200) expectFiltered(JSON.parse(answer.text), sent.query, query);
    if (answer.status === 201) {
      expect(JSON.parse(answer.text)).toMatchObject(JSON.parse(sent.body ?? ""));
      await expectKept(answer);
    }
  });
});

/** Asserts that a list is not longer than its limit, and contains only items that match the filters. */
function expectFiltered(answered: unknown, asked: Record<string, string>, query: Parameter[]): void {
  if (!Array.isArray(answered)) return;
  const limit =
    asked["limit"] ?? query.find(({ name }) => name === "limit")?.schema.default ?? Number.POSITIVE_INFINITY;
  expect(answered.length).toBeLessThanOrEqual(Number(limit));
  const filters = Object.entries(asked);
  for (const item of answered)
    for (const [name, value] of filters) if (name in item) expect(String(item[name])).toBe(value);
}

/** Asserts that the Location leads to what was created, if an operation can read it. */
async function expectKept({ headers, text }: Answer): Promise<void> {
  const path = String(headers.get("Location")).replace("/v1", "");
  const readable = Object.keys(paths).some(
    (template) => paths[template]?.["get"] && RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path),
  );
  if (readable) expect(await request("GET", path)).toMatchObject({ status: 200, text });
}

it.each(withQuery)("$operationId rejects a query with an invalid parameter", (operation) => {
  const wrong = operation.query.map(({ name, schema }) => fc.tuple(fc.constant(name), invalidText(schema, name)));
  return always(300, fc.tuple(someOf(operation.query), fc.oneof(...wrong)), async ([query, [name, value]]) => {
    const answer = await call(operation, { query: { ...query, [name]: value } });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain(`${name} must be `);
  });
});

it.each(withQuery)("$operationId rejects an unknown parameter", (operation) => {
  const unknown = only(text, "an unknown name", (name) => !operation.query.some((known) => known.name === name));
  return always(200, fc.tuple(someOf(operation.query), unknown, text), async ([query, name, value]) => {
    const search = new URLSearchParams(query);
    search.append(name, value);
    const answer = await call(operation, {}, search);
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain("unknown query parameter");
  });
});

it.each(withQuery)("$operationId rejects a repeated parameter", (operation) =>
  always(
    100,
    fc.tuple(someOf(operation.query), fc.constantFrom(...operation.query), text),
    async ([query, { name }, value]) => {
      const search = new URLSearchParams({ ...query, [name]: value });
      search.append(name, value);
      const answer = await call(operation, {}, search);
      expect(answer.status).toBe(400);
      expect(messageOf(answer)).toContain(`${name} must be given only once`);
    },
  ),
);

it.each(withBody)("$operationId rejects a body in which a property is missing or invalid", (operation) => {
  const { schema } = operation.body;
  const names = Object.keys(schema.properties ?? {}).join("|");
  return always(300, brokenObject(schema), async (body) => {
    const answer = await call(operation, { body });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toMatch(RegExp(`^(${names}) (is required and )?must be `));
  });
});

it.each(withBody)("$operationId rejects JSON that is not an object, and text that is not JSON", (operation) => {
  const other = only(fc.json(), "not an object", (json) => !json.startsWith("{"));
  return always(200, fc.oneof(other, text), async (body) => {
    expect((await call(operation, { body })).status).toBe(400);
  });
});

it.each(withBody)("$operationId rejects every other media type", (operation) => {
  const token = fc.string({ unit: fc.constantFrom(..."abcdejnosx.+-"), minLength: 1 });
  const types = fc.tuple(token, token).map((parts) => parts.join("/"));
  const others = only(types, "a different type", (type) => !type.endsWith("+json") && type !== JSON_TYPE);
  return always(100, others, async (type) => {
    expect((await call(operation, { headers: { "Content-Type": type } })).status).toBe(415);
  });
});

it.each(withPathParameters)("$operationId returns 404 if the identifier is not valid", (operation) => {
  const wrong = operation.pathParameters.map(({ name, schema }) =>
    fc.tuple(fc.constant(name), invalidText(schema, name)),
  );
  const segment = only(fc.oneof(...wrong), "a segment", ([, value]) => !["", ".", ".."].includes(value));
  return always(200, fc.tuple(valuesOf(operation.pathParameters), segment), async ([path, [name, value]]) => {
    expect((await call(operation, { path: { ...path, [name]: value } })).status).toBe(404);
  });
});

// The methods that the runtime supports. It rejects all others itself.
const METHODS = "GET HEAD POST PUT PATCH DELETE TRACE COPY LOCK MKCOL MOVE PROPFIND PURGE".split(" ");

it.each(Object.entries(paths))("%s responds to every other method with 405 and Allow", (path, item) => {
  const [described] = Object.values(item);
  const allow = described?.responses["405"]?.headers["Allow"]?.schema.const ?? "";
  const others = METHODS.filter((method) => !allow.split(", ").includes(method));
  return always(100, fc.constantFrom(...others), async (method) => {
    const { status, headers } = await request(method, path.replaceAll(/\{\w+\}/g, "1"));
    expect(status).toBe(405);
    expect(headers.get("Allow")).toBe(allow);
  });
});

// HTTP removes white space at both ends of a header.
const trimmed = (values: Arbitrary<string>) => only(values, "trimmed", (value) => value.trim() === value);
const headerText = (from: number, to: number) =>
  trimmed(
    fc.string({ unit: fc.integer({ min: from, max: to }).map((code) => String.fromCharCode(code)), maxLength: 300 }),
  );
const anyHeader = fc.oneof(headerText(0x20, 0x7e), headerText(0xa1, 0xff));

it.each(withKey)("$operationId accepts every valid Idempotency-Key, and creates only once under it", (operation) => {
  const { body, parameters, operationId } = operation;
  const key = fc.oneof(
    ...schemasOf(parameters, "Idempotency-Key").map((schema) => trimmed(validText(schema, "the key"))),
  );
  return always(100, fc.tuple(key, valid(body.schema, `the body of ${operationId}`)), async ([value, text]) => {
    const creation = { headers: { "Idempotency-Key": value }, body: text };
    const first = await call(operation, creation);
    expect([201, 422]).toContain(first.status); // 422 if the key was generated before
    expect(await call(operation, creation)).toMatchObject({ status: first.status, text: first.text });
  });
});

it.each(withKey)("$operationId rejects every other Idempotency-Key", (operation) => {
  const pattern = RegExp(schemasOf(operation.parameters, "Idempotency-Key")[0]?.pattern ?? "");
  const wrong = only(fc.oneof(anyHeader, fc.constant("a,b")), "not a key", (value) => !pattern.test(value));
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

it("every path rejects requests without a valid key", () => {
  const known = operations.map((operation) => (headers: Record<string, string>) => call(operation, { headers }));
  const unknown = ["/nothing", ""].map(
    (path) => (headers: Record<string, string>) => request("GET", path, { headers }),
  );
  const credentials = headerText(0x20, 0x7e).chain((token) =>
    fc.constantFrom(token, `Bearer ${token}`, `Basic ${token}`),
  );
  const wrong = only(trimmed(credentials), "wrong", (value) => !/^bearer +local-key$/i.test(value));
  return always(200, fc.tuple(fc.constantFrom(...known, ...unknown), wrong), async ([attempt, Authorization]) => {
    expect((await attempt({ Authorization })).status).toBe(401);
  });
});

afterAll(() => {
  expect(requests).toBeGreaterThanOrEqual(2_000);
});
