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
  ORIGIN,
  PLAIN_HTTP,
  type RequestOptions,
  requestTo,
} from "./call.ts";

const FORBIDDEN = {
  code: "forbidden",
  message:
    "Send requests over https: a key that is sent over plain HTTP can be read on the way. Ask the operator for a new " +
    "one.",
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
  const send = ({ headers, ...changes }: RequestOptions) => {
    const alice = { ...options, authorization: "Bearer alice", headers: { ...options.headers, ...headers } };
    return call(path, { ...alice, ...changes });
  };
  const expectRejected = (answer: Answer, error: typeof CLOSED, caller: string | null, retryAfter?: string) => {
    if (options.method === "HEAD") expect([answer.status, answer.text]).toEqual([error.status, ""]);
    else expectError(answer, error);
    expect(answer.headers.get("API-Key-Name")).toBe(caller);
    expect(answer.headers.get("Retry-After")).toBe(retryAfter ?? null);
  };

  const plain = { ...PLAIN_HTTP, bindings: closed };
  expectRejected(await send({ ...plain, authorization: null }), MISSING, null);
  expectRejected(await send({ ...plain, authorization: "Bearer wrong" }), INVALID, null);
  expect((await call(path, { ...plain, method: "OPTIONS", authorization: null })).status).toBe(204);
  expect(log).not.toHaveBeenCalled();
  expectRejected(await send(plain), FORBIDDEN, "API_KEY_ALICE");
  log.mockClear(); // callers.test.ts asserts what is logged

  // Not over plain HTTP, or not through Cloudflare.
  expectRejected(await send({ ...plain, origin: ORIGIN }), CLOSED, "API_KEY_ALICE", "30");
  const local = { ...plain, headers: {}, bindings: { ...closed, MAINTENANCE: "off" } };
  expectRejected(await send(local), CLOSED, "API_KEY_ALICE", "30");
  expect(limit).not.toHaveBeenCalled();

  expectRejected(await send({ bindings: limited }), TOO_MANY, "API_KEY_ALICE", "10");
  expect(limit.mock.calls).toEqual([[{ key: "API_KEY_ALICE" }]]);
  expect(log).not.toHaveBeenCalled();

  expect((await send({ bindings: open })).headers.get("API-Key-Name")).toBe("API_KEY_ALICE");
});

it("what is outside /v1 is never closed", async () => {
  const outside = { ...PLAIN_HTTP, bindings: { MAINTENANCE: "" }, authorization: null };
  expect((await call("/nothing", outside)).status).toBe(404);
});
