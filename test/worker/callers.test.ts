// Who calls: the log and the trace. API-Key-Name and the rate limit of each caller are in before-operations.test.ts.

import { tracing } from "cloudflare:workers";
import { beforeEach, expect, it, type MockInstance, vi } from "vitest";
import { call, PLAIN_HTTP } from "./call.ts";

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
    const bindings = { API_KEY_CAROL: key, MAINTENANCE: "" };
    for (const options of [{}, PLAIN_HTTP]) {
      await call("/v1/pets", { ...options, bindings, authorization: `Bearer ${key}` });
      await call("/v1/pets", { ...options, bindings, authorization: null });
    }
    return [...use.mock.calls, ...log.mock.calls].map(([line]) => JSON.parse(line));
  };
  const caller = "API_KEY_CAROL";
  const cause = "The key in API_KEY_CAROL was sent over plain HTTP, and can have been read on the way: replace it.";
  const lines = [
    { message: "API_KEY_CAROL is in use (logged once an hour)", caller },
    expect.objectContaining({ message: `configuration: ${cause}`, failure: "configuration", cause, caller }),
  ];
  expect(await logged(0, "used")).toEqual(lines);
  expect(await logged(59, "used")).toEqual([]);
  expect(await logged(60, "used")).toEqual(lines);
  expect(await logged(61, "used")).toEqual([]);
  expect(await logged(62, "replaced")).toEqual(lines);
});

it("is an attribute of the root span of a request with a valid key", async () => {
  const setAttribute = vi.fn();
  vi.spyOn(tracing, "getActiveSpan").mockReturnValue({ setAttribute } as unknown as Span);
  await call("/v1/pets", { authorization: null });
  expect(setAttribute).not.toHaveBeenCalled();
  await call("/v1/nothing");
  expect(setAttribute.mock.calls).toEqual([["caller", "API_KEY"]]);
});

it("has no rate limit if its binding fails, which is logged once", async () => {
  const failure = new Error("The binding is broken.");
  const bindings = { RATE_LIMIT: { limit: () => Promise.reject(failure) } };
  for (let i = 0; i < 2; i++) expect((await call("/v1/pets", { bindings })).status).toBe(200);
  const logged = log.mock.calls.map(([line]) => JSON.parse(line));
  expect(logged).toEqual([expect.objectContaining({ failure: "rate_limit", cause: failure.stack, caller: "API_KEY" })]);
});
