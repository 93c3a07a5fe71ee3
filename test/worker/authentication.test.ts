import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { operations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { call, countPets, expectError, type RequestOptions, requestTo } from "./service.ts";

const MISSING = {
  code: "unauthorized",
  message: "An API key is required: send it as Authorization: Bearer <API_KEY>.",
  status: 401,
};
const INVALID = { code: "unauthorized", message: "The API key is not valid.", status: 401 };

// Every operation, and what is none: whoever has no key must not be able to tell them apart.
const REQUESTS: [what: string, path: string, options: RequestOptions][] = [
  ...operations.map((operation): [string, string, RequestOptions] => [operation.operationId, ...requestTo(operation)]),
  ["HEAD", "/v1/pets", { method: "HEAD" }],
  ["an unknown path", "/v1/nothing", {}],
  ["the base path", "/v1", {}],
  ["a path that ends in a slash", "/v1/pets/", {}],
  ["a wrong method", "/v1/pets", { method: "PURGE" }],
  ["a bad query", "/v1/pets?limit=x", {}],
  ["a body that is too large", "/v1/pets", { method: "POST", body: "x".repeat(70_000) }],
];

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(REQUESTS)("%s", (_, path, options) => {
  // The operation does not run: a database that is touched would turn the 401 into a 500.
  const bindings = { DB: failing(env.DB, new Error("touched")) };

  it("is refused without a key", async () => {
    const answer = await call(path, { ...options, bindings, authorization: null });
    expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store"');
    expect(answer.status).toBe(401);
    if (options.method !== "HEAD") expectError(answer, MISSING);
  });

  it("is refused with a wrong key", async () => {
    const answer = await call(path, { ...options, bindings, authorization: "Bearer wrong" });
    expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store", error="invalid_token"');
    expect(answer.status).toBe(401);
    if (options.method !== "HEAD") expectError(answer, INVALID);
  });

  it.each([undefined, "", " ", ",", "no token"])("is answered 500 while API_KEY is %j", async (API_KEY) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const answer = await call(path, { ...options, bindings: { ...bindings, API_KEY } });
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("API_KEY");
    expect(log.mock.calls[0]?.[0]).toContain("The secret API_KEY is missing");
  });
});

it("leaves nothing stored by a refused createPet", async () => {
  const body = '{"name":"Rex","categoryId":1}';
  const headers = { "Content-Type": "application/json" };
  await call("/v1/pets", { method: "POST", body, headers, authorization: null });
  await call("/v1/pets", { method: "POST", body, headers, authorization: "Bearer wrong" });
  expect(await countPets()).toBe(0);
});

it.each(["Bearer first-key", "Bearer second-key", "bearer first-key", "BEARER first-key", "Bearer    first-key"])(
  "admits %j",
  async (authorization) => {
    expect((await call("/v1/pets", { authorization })).status).toBe(200);
  },
);

it.each(["a", "a,b", " a , b ", "b,,a,"])("admits a key of the secret %j", async (API_KEY) => {
  vi.spyOn(console, "error").mockReturnValue();
  expect((await call("/v1/pets", { authorization: "Bearer a", bindings: { API_KEY } })).status).toBe(200);
});

it.each(["a", "AZaz09-._~+/", "a=", "YQ=="])("admits every b64token, such as %j", async (key) => {
  expect((await call("/v1/pets", { authorization: `Bearer ${key}`, bindings: { API_KEY: key } })).status).toBe(200);
});

it.each([
  "",
  "Bearer",
  "Basic Zmlyc3Q6a2V5",
  "Basic Bearer first-key",
  "first-key",
  "Bearerfirst-key",
  "Bearer\tfirst-key",
])("takes %j for no bearer token", async (authorization) => {
  const answer = await call("/v1/pets", { authorization });
  expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store"');
  expectError(answer, MISSING);
});

it.each([
  "Bearer first",
  "Bearer first-key1",
  "Bearer First-key",
  "Bearer first-key,second-key",
  "Bearer first-key, Bearer first-key",
  "Bearer first-key first-key",
  "Bearer =",
  'Bearer "first-key"',
])("takes %j for an invalid token", async (authorization) => {
  const answer = await call("/v1/pets", { authorization });
  expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store", error="invalid_token"');
  expectError(answer, INVALID);
});

it("takes two Authorization headers for an invalid token", async () => {
  const headers = new Headers([
    ["Authorization", "Bearer first-key"],
    ["Authorization", "Bearer second-key"],
  ]);
  expectError(await call("/v1/pets", { authorization: headers.get("Authorization") }), INVALID);
});

it("ignores a key in the query and in the body", async () => {
  expectError(await call("/v1/pets?access_token=first-key&api_key=first-key", { authorization: null }), MISSING);
  const body = "access_token=first-key";
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  expectError(await call("/v1/pets", { method: "POST", body, headers, authorization: null }), MISSING);
});

it.each(["first-key", "second-key", "f", "x".repeat(10_000)])(
  "compares with every key in constant time, in buffers of one length, for %.10s",
  async (key) => {
    const compare = vi.spyOn(crypto.subtle, "timingSafeEqual");
    await call("/v1/pets", { authorization: `Bearer ${key}` });
    expect(compare.mock.calls.map((buffers) => buffers.map(({ byteLength }) => byteLength))).toEqual([
      [512, 512],
      [512, 512],
    ]);
  },
);

const LONGEST = "x".repeat(512);

it("admits a key of 512 characters, and none that only begins with it", async () => {
  const bindings = { API_KEY: LONGEST };
  expect((await call("/v1/pets", { authorization: `Bearer ${LONGEST}`, bindings })).status).toBe(200);
  expectError(await call("/v1/pets", { authorization: `Bearer ${LONGEST}x`, bindings }), INVALID);
  expectError(await call("/v1/pets", { authorization: `Bearer ${LONGEST.slice(1)}`, bindings }), INVALID);
});

it.each([
  ["a,b c", "2"],
  ["a b,a,,c=d", "1, 3, 4"],
  [`a,${LONGEST}x`, "2"],
])("logs by its place, once and without its text, which entry of %.20s can be no key", async (API_KEY, places) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  for (let i = 0; i < 2; i++) await call("/v1/pets", { authorization: "Bearer a", bindings: { API_KEY } });
  expect(log.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
    {
      failure: "configuration",
      cause: `Of the secret API_KEY, entry ${places} can be no key: it admits nobody.`,
      method: "GET",
      path: "/v1/pets",
      ray: null,
    },
  ]);
});
