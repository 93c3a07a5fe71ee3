// Who calls: the response header, the log, and the rate limit of each caller.

import { env, tracing } from "cloudflare:workers";
import { beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { describedOperations } from "../conformance.ts";
import { failing, intercepted } from "./binding.ts";
import { type Answer, call, createPet, expectError, type RequestOptions, requestTo } from "./call.ts";

const ALICE = { authorization: "Bearer alice", bindings: { API_KEY_ALICE: "alice" } };

const REQUESTS: [path: string, options: RequestOptions][] = [
  ...describedOperations.map((operation) => requestTo(operation)),
  ["/v1/nothing", {}],
  ["/v1/pets/", {}],
  ["/v1/pets?limit=x", {}],
  ["/v1/pets", { method: "HEAD" }],
  ["/v1/pets", { method: "PURGE" }],
];

const limitedTo = (success: boolean, asked: unknown[] = []) => ({
  async limit(options: RateLimitOptions) {
    asked.push(options);
    return { success };
  },
});
const TOO_MANY = {
  code: "too_many_requests",
  message: "The rate limit of your API key is exceeded, and this request was not carried out; try again later.",
  status: 429,
};

const nameIn = ({ headers }: Answer) => headers.get("API-Key-Name");

let use: MockInstance<typeof console.log>;
beforeEach(() => {
  use = vi.spyOn(console, "log").mockReturnValue();
});

describe.each(REQUESTS)("%s %j", (path, options) => {
  it("names the caller in every response to a request with a valid key", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const DB = failing(env.DB, new Error("D1_ERROR: Network connection lost."));
    for (const bindings of [{}, { DB }, { MAINTENANCE: "" }, { RATE_LIMIT: limitedTo(false) }]) {
      const request = { ...options, ...ALICE, bindings: { ...ALICE.bindings, ...bindings } };
      expect(nameIn(await call(path, request))).toBe("API_KEY_ALICE");
    }
    for (const [line] of log.mock.calls) expect(JSON.parse(line)).toMatchObject({ caller: "API_KEY_ALICE" });
    expect(nameIn(await call(path, options))).toBe("API_KEY");
    expect(nameIn(await call(path, { ...options, authorization: "Bearer wrong" }))).toBe(null);
    expect(nameIn(await call(path, { ...options, authorization: null }))).toBe(null);
  });

  it("is 429 if the caller has sent too many requests, before anything else but the key and MAINTENANCE", async () => {
    const log = vi.spyOn(console, "error");
    const asked: RateLimitOptions[] = [];
    // If an operation used the database, the failure would be logged.
    const bindings = { DB: failing(env.DB, new Error("touched")), RATE_LIMIT: limitedTo(false, asked) };
    const answer = await call(path, { ...options, bindings });
    if (options.method !== "HEAD") expectError(answer, TOO_MANY);
    expect([answer.status, answer.headers.get("Retry-After")]).toEqual([429, "10"]);
    expect(asked).toEqual([{ key: "API_KEY" }]);
    expect((await call(path, { ...options, bindings, authorization: null })).status).toBe(401);
    expect((await call(path, { ...options, bindings, authorization: "Bearer wrong" })).status).toBe(401);
    expect((await call(path, { ...options, bindings: { ...bindings, MAINTENANCE: "" } })).status).toBe(503);
    expect((await call(path, { bindings, method: "OPTIONS", authorization: null })).status).toBe(204);
    expect(asked.length).toBe(1);
    expect(log).not.toHaveBeenCalled();
  });
});

it("names one of the secrets if several have the same key", async () => {
  const bindings = { API_KEY_ALICE: "shared", API_KEY_BOB: "shared" };
  expect(nameIn(await call("/v1/pets", { bindings, authorization: "Bearer shared" }))).toBe("API_KEY_ALICE");
});

it("logs that a key is in use at most once an hour, whatever the response", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  const RATE_LIMIT = limitedTo(false);
  const send = (name: string, bindings = {}) =>
    call("/v1/pets", { authorization: "Bearer used", bindings: { [name]: "used", ...bindings } });
  const MINUTE = 60_000;
  const start = Date.now();
  for (const minute of [0, 1, 59, 60, 61]) {
    vi.setSystemTime(start + minute * MINUTE);
    await send("API_KEY_CAROL", { RATE_LIMIT });
    await send("API_KEY_DAVE", { MAINTENANCE: "" });
    await call("/v1/pets", { authorization: null, bindings: { API_KEY_ERIN: "erin" } });
  }
  const lines = ["API_KEY_CAROL", "API_KEY_DAVE"].map((caller) => [
    JSON.stringify({ message: `${caller} is in use (logged once an hour)`, caller }),
  ]);
  expect(use.mock.calls).toEqual([...lines, ...lines]);
});

it("is an attribute of the root span of a request with a valid key", async () => {
  const setAttribute = vi.fn();
  vi.spyOn(tracing, "getActiveSpan").mockReturnValue({ setAttribute } as unknown as Span);
  await call("/v1/pets", { authorization: null });
  expect(setAttribute).not.toHaveBeenCalled();
  await call("/v1/nothing", ALICE);
  expect(setAttribute.mock.calls).toEqual([["caller", "API_KEY_ALICE"]]);
});

describe("the rate limit", () => {
  it("of one caller does not disturb another, and a rejected request reaches no database", async () => {
    const limit = 3;
    let queries = 0;
    const DB = intercepted(env.DB, (_, execute) => {
      queries++;
      return execute();
    });
    const bindings = { ...ALICE.bindings, DB, RATE_LIMIT: env.LOW_RATE_LIMIT };
    // The simulator counts in windows of the wall clock, of which these requests meet at most two.
    const requests = Array.from({ length: 2 * limit + 1 }, () =>
      createPet({ name: "Rex", categoryId: 1 }, { bindings }),
    );
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    const accepted = statuses.filter((status) => status === 201).length;
    expect(statuses.filter((status) => status === 429).length).toBe(statuses.length - accepted);
    expect(accepted).toBeGreaterThanOrEqual(limit);
    expect(accepted).toBeLessThan(statuses.length);
    expect(queries).toBe(accepted);
    expect((await call("/v1/pets", { ...ALICE, bindings })).status).toBe(200);
  });

  it("is not applied if the binding fails, which is logged once", async () => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const failure = new Error("The binding is broken.");
    const broken = [
      async () => Promise.reject(failure),
      () => {
        throw failure;
      },
    ];
    for (const limit of broken) {
      expect((await call("/v1/pets", { bindings: { RATE_LIMIT: { limit } } })).status).toBe(200);
    }
    const logged = log.mock.calls.map(([line]) => JSON.parse(line));
    expect(logged).toEqual([
      expect.objectContaining({ failure: "rate_limit", cause: failure.stack, caller: "API_KEY" }),
    ]);
  });
});
