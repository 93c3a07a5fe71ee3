import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import service from "../../src/index.ts";
import { describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { call, countPets, expectError, ORIGIN, type RequestOptions, requestTo } from "./service.ts";

const MISSING = {
  code: "unauthorized",
  message: "An API key is required: send it as Authorization: Bearer <API_KEY>.",
  status: 401,
};
const INVALID = { code: "unauthorized", message: "The API key is not valid.", status: 401 };

// Every operation, and requests that match no operation: without a key, they all get the same response.
const REQUESTS: [what: string, path: string, options: RequestOptions][] = [
  ...describedOperations.map((operation): [string, string, RequestOptions] => [
    operation.operationId,
    ...requestTo(operation),
  ]),
  ["HEAD", "/v1/pets", { method: "HEAD" }],
  ["an unknown path", "/v1/nothing", {}],
  ["the base path", "/v1", {}],
  ["a path with a slash at the end", "/v1/pets/", {}],
  ["a wrong method", "/v1/pets", { method: "PURGE" }],
  ["an invalid query", "/v1/pets?limit=x", {}],
  ["a body that is too large", "/v1/pets", { method: "POST", body: "x".repeat(5_000) }],
];

describe.each(REQUESTS)("%s", (_, path, options) => {
  // The operation does not run: using the database would turn the 401 into a 500.
  const bindings = { DB: failing(env.DB, new Error("touched")) };

  it("is 401 without a key", async () => {
    const answer = await call(path, { ...options, bindings, authorization: null });
    expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store"');
    expect(answer.status).toBe(401);
    if (options.method !== "HEAD") expectError(answer, MISSING);
  });

  it("is 401 with a wrong key", async () => {
    const answer = await call(path, { ...options, bindings, authorization: "Bearer wrong" });
    expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store", error="invalid_token"');
    expect(answer.status).toBe(401);
    if (options.method !== "HEAD") expectError(answer, INVALID);
  });

  it.each([undefined, "", " ", ",", "no token"])("is 500 while API_KEY is %j", async (API_KEY) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const answer = await call(path, { ...options, bindings: { ...bindings, API_KEY } });
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("API_KEY");
    expect(log.mock.calls[0]?.[0]).toContain("The secret API_KEY is missing or has no valid key.");
  });
});

it("stores nothing for a createPet without a valid key", async () => {
  const body = '{"name":"Rex","categoryId":1}';
  const headers = { "Content-Type": "application/json" };
  await call("/v1/pets", { method: "POST", body, headers, authorization: null });
  await call("/v1/pets", { method: "POST", body, headers, authorization: "Bearer wrong" });
  expect(await countPets()).toBe(0);
});

it.each(["Bearer first-key", "Bearer second-key", "bearer first-key", "BEARER first-key", "Bearer    first-key"])(
  "accepts %j",
  async (authorization) => {
    expect((await call("/v1/pets", { authorization })).status).toBe(200);
  },
);

it.each(["a", "a,b", " a , b ", "b,,a,"])("accepts a key in the secret %j", async (API_KEY) => {
  vi.spyOn(console, "error").mockReturnValue();
  expect((await call("/v1/pets", { authorization: "Bearer a", bindings: { API_KEY } })).status).toBe(200);
});

it.each(["a", "AZaz09-._~+/", "a=", "YQ=="])("accepts every b64token, such as %j", async (key) => {
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
])("%j is not a bearer token", async (authorization) => {
  const answer = await call("/v1/pets", { authorization });
  expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store"');
  expectError(answer, MISSING);
});

it.each([
  "Bearer first",
  "Bearer first-key1",
  "Bearer First-key",
  "Bearer first-key first-key",
  "Bearer =",
  'Bearer "first-key"',
])("%j is an invalid token", async (authorization) => {
  const answer = await call("/v1/pets", { authorization });
  expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store", error="invalid_token"');
  expectError(answer, INVALID);
});

// The runtime passes on non-ASCII characters, but warns about them in the Request constructor.
it.each([
  "\u00a0",
  "first-key\u2028",
  "\u2028first-key",
  `${" ".repeat(60_000)}\u2028x`,
  "first-key\n",
  "\r\nfirst-key",
])("a bearer token with a line terminator or a non-ASCII character is invalid: %j", async (token) => {
  const headers = { get: () => `Bearer ${token}`, has: () => true };
  const request = new Proxy(new Request(`${ORIGIN}/v1/pets`), {
    get: (target, name) => (name === "headers" ? headers : Reflect.get(target, name)),
  });
  const response = await service.fetch(request, env);
  expect(response.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store", error="invalid_token"');
  expect(await response.json()).toEqual(INVALID);
});

it.each(["Bearer first-key,second-key", "Bearer first-key, Bearer second-key", "Bearer first-key, Basic x"])(
  "asks for one header and one key instead of %j",
  async (authorization) => {
    const answer = await call("/v1/pets", { authorization });
    expect(answer.headers.get("WWW-Authenticate")).toBe('Bearer realm="animal-store", error="invalid_token"');
    expectError(answer, { ...INVALID, message: "Send one Authorization header, with one API key." });
  },
);

it("ignores a key in the query and in the body", async () => {
  expectError(await call("/v1/pets?access_token=first-key&api_key=first-key", { authorization: null }), MISSING);
  const body = "access_token=first-key";
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  expectError(await call("/v1/pets", { method: "POST", body, headers, authorization: null }), MISSING);
});

it.each(["first-key", "second-key", "f", "x".repeat(10_000)])(
  "compares %s with every key, in constant time and in buffers of the same length",
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

it("accepts a key of 512 characters, but not a longer or shorter one", async () => {
  const bindings = { API_KEY: LONGEST };
  expect((await call("/v1/pets", { authorization: `Bearer ${LONGEST}`, bindings })).status).toBe(200);
  expectError(await call("/v1/pets", { authorization: `Bearer ${LONGEST}x`, bindings }), INVALID);
  expectError(await call("/v1/pets", { authorization: `Bearer ${LONGEST.slice(1)}`, bindings }), INVALID);
});

it.each([
  ["a,b c", "entry 2 is not a valid key"],
  ["a b,a,,c=d", "entries 1, 3, 4 are not valid keys"],
  [`a,${LONGEST}x`, "entry 2 is not a valid key"],
])("logs the position of each invalid entry in a secret, once and without its text: %s", async (API_KEY, problem) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  const cause = `Secret API_KEY is partly ignored: ${problem}.`;
  for (let i = 0; i < 2; i++) await call("/v1/pets", { authorization: "Bearer a", bindings: { API_KEY } });
  expect(log.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
    {
      message: `configuration: ${cause}`,
      failure: "configuration",
      cause,
      method: "GET",
      path: "/v1/pets",
      ray: null,
    },
  ]);
});
