// What is checked before any operation, in this order: the key, plain HTTP, maintenance, and the rate limit.

import { env } from "cloudflare:workers";
import { expect, it, vi } from "vitest";
import { describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import {
  type Answer,
  call,
  expectError,
  INVALID,
  MISSING,
  PLAIN_HTTP,
  type RequestOptions,
  requestTo,
} from "./call.ts";

const FORBIDDEN = {
  code: "forbidden",
  message:
    "Send requests over https: a key that is sent over plain HTTP can be read on the way. Ask the operator for a new one.",
  status: 403,
};
const CLOSED = {
  code: "service_unavailable",
  message: "The service is closed for maintenance, and this request was not carried out; try again later.",
  status: 503,
};
const TOO_MANY = {
  code: "too_many_requests",
  message: "The rate limit of your API key is exceeded, and this request was not carried out; try again later.",
  status: 429,
};

const REQUESTS: [path: string, options: RequestOptions][] = [
  ...describedOperations.map((operation) => requestTo(operation, { headers: { "Idempotency-Key": "key" } })),
  ["/v1", {}],
  ["/v1/pets/", {}],
  ["/v1/nothing", {}],
  ["/v1/pets?limit=x", {}],
  ["/v1/pets", { method: "HEAD" }],
  ["/v1/pets", { method: "PURGE" }],
];

it.each(REQUESTS)("%s %j", async (path, options) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  const limit = vi.fn(async () => ({ success: false }));
  // If an operation used the database, the failure would be logged.
  const open = { API_KEY_ALICE: "alice", DB: failing(env.DB, new Error("touched")) };
  const limited = { ...open, RATE_LIMIT: { limit } };
  const closed = { ...limited, MAINTENANCE: "" };
  const send = (changes: RequestOptions) =>
    call(path, {
      authorization: "Bearer alice",
      ...options,
      ...changes,
      headers: { ...options.headers, ...changes.headers },
    });
  const expectRejected = (answer: Answer, error: typeof CLOSED, headers: Record<string, string>) => {
    if (options.method === "HEAD") expect([answer.status, answer.text]).toEqual([error.status, ""]);
    else expectError(answer, error);
    for (const name of ["API-Key-Name", "Retry-After"]) expect(answer.headers.get(name)).toBe(headers[name] ?? null);
  };
  const caller = { "API-Key-Name": "API_KEY_ALICE" };

  const everything = { ...PLAIN_HTTP, bindings: closed };
  expectRejected(await send({ ...everything, authorization: null }), MISSING, {});
  expectRejected(await send({ ...everything, authorization: "Bearer wrong" }), INVALID, {});
  expect((await call(path, { ...everything, method: "OPTIONS", authorization: null })).status).toBe(204);
  expect(log).not.toHaveBeenCalled();
  expectRejected(await send(everything), FORBIDDEN, caller);
  log.mockClear(); // callers.test.ts asserts what is logged
  const local = { origin: PLAIN_HTTP.origin, bindings: { ...closed, MAINTENANCE: "off" } };
  expectRejected(await send(local), CLOSED, { ...caller, "Retry-After": "30" });
  const secure = { headers: PLAIN_HTTP.headers, bindings: closed };
  expectRejected(await send(secure), CLOSED, { ...caller, "Retry-After": "30" });
  expect(limit).not.toHaveBeenCalled();
  expectRejected(await send({ bindings: limited }), TOO_MANY, { ...caller, "Retry-After": "10" });
  expect(limit.mock.calls).toEqual([[{ key: "API_KEY_ALICE" }]]);
  expect(log).not.toHaveBeenCalled();
  expect(Object.fromEntries((await send({ bindings: open })).headers)).toMatchObject({
    "api-key-name": "API_KEY_ALICE",
  });
});

it("what is outside /v1 is never closed", async () => {
  const outside = { ...PLAIN_HTTP, bindings: { MAINTENANCE: "" }, authorization: null };
  expect((await call("/nothing", outside)).status).toBe(404);
});
