// Who calls: the name of a secret without its numbers, which follow two underscores at its end. API-Key-Name and the
// rate limit of each caller are in before-operations.test.ts.

import { env, tracing } from "cloudflare:workers";
import { beforeEach, expect, it, type MockInstance, vi } from "vitest";
import { call, createPet, PLAIN_HTTP } from "./call.ts";

const KEY = "a-key-for-one-request";
const LONGEST = `API_KEY_${"x".repeat(56)}`;

let use: MockInstance<typeof console.log>;
let log: MockInstance<typeof console.error>;
beforeEach(() => {
  use = vi.spyOn(console, "log").mockReturnValue();
  log = vi.spyOn(console, "error").mockReturnValue();
});

it("logs at most once an hour that a key is in use, and that it was sent over plain HTTP", async () => {
  const start = Date.now();
  /** Sends requests at a minute, and returns the lines in the log. */
  const logged = async (minute: number, key: string) => {
    vi.setSystemTime(start + minute * 60_000);
    for (const spy of [use, log]) spy.mockClear();
    const bindings = { API_KEY_CAROL__2: key, MAINTENANCE: "" };
    for (const options of [{}, PLAIN_HTTP]) {
      await call("/v1/pets", { ...options, bindings, authorization: `Bearer ${key}` });
      await call("/v1/pets", { ...options, bindings, authorization: null });
    }
    return [...use.mock.calls, ...log.mock.calls].map(([line]) => JSON.parse(line));
  };
  const caller = "API_KEY_CAROL";
  const cause = "The key in API_KEY_CAROL__2 was sent over plain HTTP, and can have been read on the way: replace it.";
  const lines = [
    { message: "API_KEY_CAROL__2 is in use (logged once an hour)", caller },
    expect.objectContaining({ message: `configuration: ${cause}`, failure: "configuration", cause, caller }),
  ];
  expect(await logged(0, "the-key-that-is-in-use")).toEqual(lines);
  expect(await logged(59, "the-key-that-is-in-use")).toEqual([]);
  expect(await logged(60, "the-key-that-is-in-use")).toEqual(lines);
  expect(await logged(61, "the-key-that-is-in-use")).toEqual([]);
  expect(await logged(62, "the-key-that-replaces-it")).toEqual(lines);
});

it("the caller is an attribute of the root span of a request with a valid key", async () => {
  const setAttribute = vi.fn();
  vi.spyOn(tracing, "getActiveSpan").mockReturnValue({ setAttribute } as unknown as Span);
  await call("/v1/pets", { authorization: null });
  expect(setAttribute).not.toHaveBeenCalled();
  await call("/v1/nothing", { authorization: `Bearer ${KEY}`, bindings: { API_KEY_SHOP__2: KEY } });
  expect(setAttribute.mock.calls).toEqual([["caller", "API_KEY_SHOP"]]);
});

it.each([
  ["API_KEY__2", "API_KEY"],
  ["API_KEY_ROOM_101", "API_KEY_ROOM_101"],
  ["API_KEY_ROOM_102__10", "API_KEY_ROOM_102"],
  ["API_KEY_SHOP__2__3", "API_KEY_SHOP"],
  ["API_KEY_2", "API_KEY_2"],
  ["API_KEY_A__2_B", "API_KEY_A__2_B"],
  [`${LONGEST}__2`, LONGEST],
])("with the key in %s, the caller is %s", async (secret, caller) => {
  const body = '{"name":"Rex","categoryId":1}';
  const { status, headers } = await createPet(body, { authorization: `Bearer ${KEY}`, bindings: { [secret]: KEY } });
  expect([status, headers.get("API-Key-Name")]).toEqual([201, secret]);
  expect(await env.DB.prepare("SELECT created_by FROM pets").first()).toEqual({ created_by: caller });
});

it("a caller has no rate limit if the binding answers anything but a refusal", async () => {
  for (const answer of [{}, { success: null }]) {
    const bindings = { RATE_LIMIT: { limit: async () => answer as never } };
    expect((await call("/v1/pets", { bindings })).status).toBe(200);
  }
});

it("a caller has no rate limit if the binding fails, which is logged once an hour", async () => {
  const failure = new Error("The binding is broken.");
  const key = "a-key-that-fails-once"; // What is logged outlives a test.
  const bindings = { API_KEY_DAVE: key, RATE_LIMIT: { limit: () => Promise.reject(failure) } };
  const authorization = `Bearer ${key}`;
  for (let i = 0; i < 2; i++) expect((await call("/v1/pets", { authorization, bindings })).status).toBe(200);
  const logged = log.mock.calls.map(([line]) => JSON.parse(line));
  const line = { failure: "rate_limit", cause: failure.stack, caller: "API_KEY_DAVE" };
  expect(logged).toEqual([expect.objectContaining(line)]);
});
