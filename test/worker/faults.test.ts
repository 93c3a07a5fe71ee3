// A failure of the database: what its caller gets, and what is logged.

import { env } from "cloudflare:workers";
import { beforeEach, expect, it, type MockInstance, vi } from "vitest";
import { failing, intercepted } from "./binding.ts";
import { type Answer, call, countPets, createPet, EXAMPLE_CALLS, expectError, REX } from "./call.ts";

// The Worker sees cf-ray without the data centre, which callers see at its end (-AMS).
const RAY = "9e7ef1dc58252cea";

let log: MockInstance<typeof console.error>;
beforeEach(() => {
  log = vi.spyOn(console, "error").mockReturnValue();
});

/**
 * Asserts that one line of JSON was logged, without the query. Its `cause` contains `cause`, and its message starts
 * like it.
 */
function expectLogged(failure: string, cause: string): void {
  const lines = log.mock.calls.map(([line]) => line);
  expect(lines).toEqual([expect.not.stringContaining("\n")]);
  const logged = JSON.parse(String(lines[0]));
  expect(logged).toEqual({
    message: `${failure}: ${logged.cause.split("\n")[0]}`,
    failure,
    cause: expect.stringContaining(cause),
    method: expect.stringMatching(/^[A-Z]+$/),
    path: expect.stringMatching(/^\/v1\/[^?]+$/),
    ray: RAY,
    caller: "API_KEY",
  });
}

const headers = { "cf-ray": RAY };
const WITH_KEY = { ...headers, "Idempotency-Key": "key" };

const EVERY_CALL: typeof EXAMPLE_CALLS = {
  ...EXAMPLE_CALLS,
  "listPets with a filter": (options) => call("/v1/pets?status=sold", options),
  "createPet with a key": (options) => createPet(REX, { ...options, headers: WITH_KEY }),
};

/** Performs every operation on `DB`, which fails or returns nonsense; each must log one line. */
async function performAll(DB: D1Database, expectAnswer: (answer: Answer, mayBeStored: boolean) => void): Promise<void> {
  for (const [name, perform] of Object.entries(EVERY_CALL)) {
    log.mockClear();
    expectAnswer(await perform({ headers, bindings: { DB } }), name === "createPet");
  }
}

const LOST = new Error("D1_ERROR: Network connection lost.");

it.each([
  ["store_unavailable", LOST],
  ["internal_error", new Error("D1_ERROR: internal error")],
] as const)("a failure is %s in every operation, and logged with its stack", async (code, failure) => {
  vi.spyOn(scheduler, "wait").mockResolvedValue();
  await performAll(failing(failure), (answer, mayBeStored) => {
    expectError(answer, mayBeStored ? "outcome_unknown" : code);
    expectLogged(code, String(failure.stack));
  });
});

it.each(Object.entries(EXAMPLE_CALLS))("%s without an Idempotency-Key is tried once", async (_, perform) => {
  const lose = vi.fn(() => Promise.reject(LOST));
  expect((await perform({ bindings: { DB: intercepted(lose) } })).status).toBeGreaterThanOrEqual(500);
  expect(lose).toHaveBeenCalledTimes(1);
});

it("a failure that D1 did not throw is not transient, whatever it says", async () => {
  vi.spyOn(crypto.subtle, "timingSafeEqual").mockImplementation(() => {
    throw LOST;
  });
  expectError(await call("/v1/pets", { headers }), "internal_error");
  const [line] = log.mock.lastCall ?? [];
  expect(JSON.parse(line)).toMatchObject({ failure: "internal_error", cause: LOST.stack });
});

const REFUSED = true;
const UNKNOWN = false;

// What D1's messages mean: whether it reports that it did not carry the statement out, and the seconds of Retry-After.
it.each<[message: string, isRefused: boolean, retryAfter?: number]>([
  ["D1_ERROR: Failed to parse body as JSON, got: D1_ERROR: no such table: pets: SQLITE_ERROR", UNKNOWN, 1],
  ["Failed to parse body as JSON, got: <h1>Your account has exceeded</h1>\n: SQLITE_BUSY", UNKNOWN, 1],

  ["D1_ERROR: no such table: timeout: SQLITE_ERROR", REFUSED],
  ["D1_ERROR: UNIQUE constraint failed: pets.id: SQLITE_CONSTRAINT_PRIMARYKEY", REFUSED],
  ["D1_ERROR: UNIQUE constraint failed: pets.id: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)", REFUSED],
  ["D1_ERROR: CHECK constraint failed: name <> 'x' -- : SQLITE_BUSY\n: SQLITE_CONSTRAINT", REFUSED],
  ["D1_ERROR: CHECK constraint failed: 'Failed to parse body as JSON, got: 1': SQLITE_CONSTRAINT", REFUSED],

  ["D1_ERROR: Exceeded maximum DB size.", REFUSED],
  ["D1_ERROR: Your account has exceeded D1's maximum account storage limit, please contact Cloudflare.", REFUSED],
  ["D1_ERROR: Your account has exceeded D1's free tier daily row write limit. Reset at midnight UTC.", REFUSED],
  ["D1_ERROR: The daily limit of the free tier is reached.", REFUSED],

  ["D1_ERROR: Currently processing a long-running export.", REFUSED, 1],
  ["Currently processing a long-running import.", REFUSED, 1],
  ["D1_ERROR: database is locked", REFUSED, 1],
  ["D1_ERROR: SQLITE_BUSY", REFUSED, 1],
  ["D1_ERROR: cannot start a transaction: SQLITE_BUSY_SNAPSHOT", REFUSED, 1],

  ["D1_ERROR: D1 DB is overloaded. Requests queued for too long.", UNKNOWN, 10],
  ["D1_ERROR: D1 DB exceeded its CPU time limit and was reset.", UNKNOWN, 10],
  ["D1_ERROR: D1 DB's isolate exceeded its memory limit and was reset.", UNKNOWN, 10],

  ["Network connection lost.", UNKNOWN, 1],
  ["D1_ERROR: Network connection lost after the import: SQLITE_BUSY, then nothing", UNKNOWN, 1],
  ["Network connection lost: Currently processing a long-running import.", UNKNOWN, 1],
  ["Network connection lost: database is locked", UNKNOWN, 1],
  ["Network connection lost: Exceeded maximum DB size: SQLITE_CONSTRAINT", UNKNOWN, 1],
  ["D1_ERROR: D1 DB reset because its code was updated.", UNKNOWN, 1],
  ['D1_ERROR: {"D1_RESET_DO":true}', UNKNOWN, 1],
  ["D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.", UNKNOWN, 1],
  ["D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.", UNKNOWN, 1],
  ["D1_ERROR: Query timed out.", UNKNOWN, 1],
  ["D1_ERROR: Replica disconnected from primary.", UNKNOWN, 1],
  ["D1_ERROR: internal error; reference = 0s8a7d6f", UNKNOWN, 1],
  ["Connection closed: this Durable Object instance is no longer active", UNKNOWN, 1],
  ["D1_ERROR: Can't read from request stream because client disconnected.", UNKNOWN, 1],

  ["D1_ERROR: database or disk is full: SQLITE_FULL", UNKNOWN],
  ["D1_ERROR: internal error", UNKNOWN],
  ["NOT NULL constraint failed: pets.name: SQLITE_CONSTRAINT", UNKNOWN], // not as D1 reports it
])("a create that fails with %j", async (message, isRefused, retryAfter) => {
  const wait = vi.spyOn(scheduler, "wait").mockResolvedValue();
  const fail = vi.fn(() => Promise.reject(new Error(message)));
  const bindings = { DB: intercepted(fail) };
  const failed = retryAfter ? "store_unavailable" : "internal_error";

  const withoutKey = await createPet(REX, { bindings });
  expectError(withoutKey, isRefused ? failed : "outcome_unknown");
  expect(withoutKey.headers.get("Retry-After")).toBe(isRefused && retryAfter ? String(retryAfter) : null);
  expect(fail).toHaveBeenCalledTimes(1);

  fail.mockClear();
  const withKey = await createPet(REX, { bindings, headers: WITH_KEY });
  expectError(withKey, failed);
  expect(withKey.headers.get("Retry-After")).toBe(retryAfter ? String(retryAfter) : null);
  expect(fail).toHaveBeenCalledTimes(retryAfter === 1 ? 3 : 1);
  expect(wait).toHaveBeenCalledTimes(retryAfter === 1 ? 2 : 0);
});

it("createPet does not say that anything was stored if nothing was sent", async () => {
  expectError(await createPet(REX, { bindings: { DB: undefined } }), "internal_error");
});

it("a failure may be a value that cannot be printed", async () => {
  const failure = { message: "Network connection lost.", toString: null };
  expectError(await call("/v1/pets", { headers, bindings: { DB: failing(failure) } }), "internal_error");
  expectLogged("internal_error", "a value that cannot be printed");
});

it.each([
  ["listPets", "DROP TABLE pets"],
  ["listPets", "ALTER TABLE pets RENAME COLUMN status TO later"],
  ["createPet", "ALTER TABLE pets RENAME COLUMN status TO later"],
  ["listPets with a filter", "DROP INDEX pets_by_status"],
  ["createPet with a key", "DROP INDEX pets_by_idempotency_key"],
])("if what %s needs is missing, the log says where to look: %s", async (name, sql) => {
  await env.DB.exec(sql);
  expectError((await EVERY_CALL[name]?.({ headers })) ?? expect.fail(), "internal_error");
  expectLogged("internal_error", 'SQLITE_ERROR (see "A 500" in docs/OPERATIONS.md)');
});

/** A database that returns these results for every statement. */
const answering = (results: unknown) => intercepted(async <T>() => ({ success: true, meta: {}, results }) as T);

it.each([{ results: {} }, { results: [{ json: "garbage" }] }])(
  "a result without JSON is a failure: %j",
  async ({ results }) => {
    await performAll(answering(results), ({ status }) => {
      expect(status).toBe(500);
      expectLogged("internal_error", "Error: D1 ");
    });
  },
);

it("a result of createPet without its row, its id or its comparison is a failure", async () => {
  for (const results of [[], [{ json: '{"id":1}' }], [{ json: '{"id":null}', matches: 1 }]])
    expectError(await createPet(REX, { bindings: { DB: answering(results) } }), "outcome_unknown");
});

it.each([{}, { "Content-Length": "29" }])("an incomplete body is 400 and not logged: %j", async (length) => {
  const body = new ReadableStream({
    type: "bytes",
    // A part that is already a complete animal.
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"name":"Rex","categoryId":1}')),
    pull: (controller) => controller.error(new Error("Network connection lost.")),
  });
  expectError(await createPet(body, { headers: length }), "invalid_request", "The body is incomplete or malformed.");
  expect(log).not.toHaveBeenCalled();
  expect(await countPets()).toBe(0);
});
