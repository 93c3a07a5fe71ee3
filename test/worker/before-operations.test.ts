// What is checked before any operation, in this order: the key, plain HTTP, maintenance, and the rate limit.

import { beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { call, expectError, ORIGIN, PLAIN_HTTP, type RequestOptions, requestTo } from "./call.ts";

const ALICE = "a-key-of-alice-and-bob";

const REQUESTS: [path: string, options: RequestOptions][] = [
  ...describedOperations.map((operation) => requestTo(operation, { headers: { "Idempotency-Key": "key" } })),
  ["/v1", {}],
  ["/v1/pets/", {}],
  ["/v1/nothing", {}],
  ["/v1/pets?limit=x", {}],
  ["/v1/pets", { method: "PURGE" }],
];

// If an operation used the database, the failure would be logged. API_KEY_BOB has the same key as API_KEY_ALICE__2.
const OPEN = { API_KEY_BOB: ALICE, API_KEY_ALICE__2: ALICE, DB: failing(new Error("touched")) };
const limit = vi.fn(async () => ({ success: false }));
const LIMITED = { ...OPEN, RATE_LIMIT: { limit } };
const CLOSED_AND_LIMITED = { ...LIMITED, MAINTENANCE: "" };
const { origin: HTTP, headers: CLOUDFLARE } = PLAIN_HTTP;

describe.each(REQUESTS)("%s %j", (path, options) => {
  let log: MockInstance<typeof console.error>;
  beforeEach(() => {
    log = vi.spyOn(console, "error").mockReturnValue();
    limit.mockClear();
  });

  /** Sends the request, by default with Alice's key. */
  const send = ({ headers, ...changes }: RequestOptions) =>
    call(path, {
      ...options,
      authorization: `Bearer ${ALICE}`,
      headers: { ...options.headers, ...headers },
      ...changes,
    });

  it("first needs a valid key, unless it is a preflight", async () => {
    const plain = { ...PLAIN_HTTP, bindings: CLOSED_AND_LIMITED };
    expectError(await send({ ...plain, authorization: null }), "api_key_missing");
    expectError(await send({ ...plain, authorization: "Bearer wrong" }), "api_key_invalid");
    expect((await call(path, { ...plain, method: "OPTIONS", authorization: null })).status).toBe(204);
    expect(log).not.toHaveBeenCalled();
  });

  // callers.test.ts asserts what is logged.
  it.each([{}, { "cf-visitor": '{"scheme":"http"}', "x-forwarded-proto": "https" }])(
    "is then forbidden over plain HTTP, whatever a proxy adds: %j",
    async (added) => {
      const headers = { ...CLOUDFLARE, ...added };
      expectError(await send({ origin: HTTP, headers, bindings: CLOSED_AND_LIMITED }), "plain_http");
    },
  );

  it.each([
    ["over https", ORIGIN, CLOUDFLARE],
    ["locally", HTTP, {}],
    ["through a tunnel to a local service", HTTP, { ...CLOUDFLARE, "cf-visitor": '{"scheme":"https"}' }],
  ])("then finds the service closed, whatever the value of MAINTENANCE: %s", async (_, origin, headers) => {
    for (const MAINTENANCE of ["", "off"]) {
      const answer = await send({ origin, headers, bindings: { ...CLOSED_AND_LIMITED, MAINTENANCE } });
      expectError(answer, "closed");
      expect(answer.headers.get("Retry-After")).toBe("30");
    }
    expect(limit).not.toHaveBeenCalled();
  });

  it("then counts for its caller's rate limit", async () => {
    expectError(await send({ bindings: LIMITED }), "rate_limited");
    expect(limit.mock.calls).toEqual([[{ key: "API_KEY_ALICE" }]]);
    expect(log).not.toHaveBeenCalled();
  });

  it("is of the secret that sorts first, if several have the same key", async () => {
    expect((await send({ bindings: OPEN })).headers.get("API-Key-Name")).toBe("API_KEY_ALICE__2");
  });
});
