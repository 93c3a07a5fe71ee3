// What is checked before any operation, in this order: the key, plain HTTP, maintenance, and the rate limit.

import { env } from "cloudflare:workers";
import { expect, it, vi } from "vitest";
import { describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { call, expectError, INVALID, MISSING, ORIGIN, PLAIN_HTTP, type RequestOptions, requestTo } from "./call.ts";

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
  message: "Your rate limit is exceeded, and this request was not carried out; try again later.",
  status: 429,
};

const ALICE = "a-key-of-alice-and-bob";

const REQUESTS: [path: string, options: RequestOptions][] = [
  ...describedOperations.map((operation) => requestTo(operation, { headers: { "Idempotency-Key": "key" } })),
  ["/v1", {}],
  ["/v1/pets/", {}],
  ["/v1/nothing", {}],
  ["/v1/pets?limit=x", {}],
  ["/v1/pets", { method: "PURGE" }],
];

it.each(REQUESTS)("%s %j", async (path, options) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  const limit = vi.fn(async () => ({ success: false }));
  // If an operation used the database, the failure would be logged.
  const open = { API_KEY_BOB: ALICE, API_KEY_ALICE__2: ALICE, DB: failing(env.DB, new Error("touched")) };
  const limited = { ...open, RATE_LIMIT: { limit } };
  const closed = { ...limited, MAINTENANCE: "" };
  const send = ({ headers, ...changes }: RequestOptions) => {
    const alice = { ...options, authorization: `Bearer ${ALICE}`, headers: { ...options.headers, ...headers } };
    return call(path, { ...alice, ...changes });
  };
  const plain = { ...PLAIN_HTTP, bindings: closed };
  const visitor = { ...PLAIN_HTTP.headers, "cf-visitor": '{"scheme":"http"}', "x-forwarded-proto": "https" };
  expectError(await send({ ...plain, authorization: null }), MISSING);
  expectError(await send({ ...plain, authorization: "Bearer wrong" }), INVALID);
  expect((await call(path, { ...plain, method: "OPTIONS", authorization: null })).status).toBe(204);
  expect(log).not.toHaveBeenCalled();
  expectError(await send(plain), FORBIDDEN);
  expectError(await send({ ...plain, headers: visitor }), FORBIDDEN);
  log.mockClear(); // callers.test.ts asserts what is logged

  const https = await send({ ...plain, origin: ORIGIN });
  expectError(https, CLOSED);
  expect(https.headers.get("Retry-After")).toBe("30");
  // Not through Cloudflare.
  const local = { origin: PLAIN_HTTP.origin, bindings: { ...closed, MAINTENANCE: "off" } };
  expectError(await send(local), CLOSED);
  // Through a tunnel to a local service, which Cloudflare tells that its caller used https.
  expectError(await send({ ...plain, headers: { ...PLAIN_HTTP.headers, "cf-visitor": '{"scheme":"https"}' } }), CLOSED);
  expect(limit).not.toHaveBeenCalled();

  expectError(await send({ bindings: limited }), TOO_MANY);
  expect(limit.mock.calls).toEqual([[{ key: "API_KEY_ALICE" }]]);
  expect(log).not.toHaveBeenCalled();

  // If several secrets have the same key, the one that sorts first counts.
  expect((await send({ bindings: open })).headers.get("API-Key-Name")).toBe("API_KEY_ALICE__2");
});
