import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import service from "../../src/index.ts";
import { failing, intercepted } from "./binding.ts";
import {
  type Answer,
  badRequest,
  call,
  countPets,
  createPet,
  expectBody,
  expectError,
  ORIGIN,
  PERFORM,
  type RequestOptions,
  UNAVAILABLE,
  UNAVAILABLE_OR_STORED,
} from "./service.ts";

const INTERNAL = {
  code: "internal_error",
  message: "The service failed. Report it to the operator with the cf-ray header.",
  status: 500,
};

// The Worker sees cf-ray without the data centre, which callers see at its end (-AMS).
const RAY = "9e7ef1dc58252cea";

let log: MockInstance<typeof console.error>;
beforeEach(() => {
  log = vi.spyOn(console, "error").mockReturnValue();
});

/** Asserts that one line of JSON was logged, without the query, with the failure and one of the causes, separated by "|". */
function expectLogged(failure: string, causes: string): void {
  const lines = log.mock.calls.map(([line]) => line);
  expect(lines).toEqual([expect.not.stringContaining("\n")]);
  const logged = JSON.parse(String(lines[0]));
  expect(logged).toEqual({
    message: expect.stringMatching(RegExp(`^${failure}: .+$`)),
    failure,
    cause: expect.toSatisfy((cause: string) => causes.split("|").some((part) => cause.includes(part))),
    method: expect.stringMatching(/^[A-Z]+$/),
    path: expect.stringMatching(/^\/v1\/[^?]+$/),
    ray: RAY,
  });
}

const headers = { "cf-ray": RAY };
const WITH_KEY = { ...headers, "Idempotency-Key": "key" };

const thrower = () => {
  throw new Error("thrown on purpose");
};

const PERFORMED = [
  ...Object.values(PERFORM),
  (options: RequestOptions) => call("/v1/pets?status=sold", options),
  (options: RequestOptions) => createPet({ name: "Rex", categoryId: 1 }, { ...options, headers: WITH_KEY }),
];

/** Performs every operation on `DB`, which fails or returns nonsense; each must log one line. */
async function performAll(DB: D1Database | undefined, expectAnswer: (answer: Answer) => void): Promise<void> {
  for (const perform of PERFORMED) {
    log.mockClear();
    expectAnswer(await perform({ headers, bindings: { DB } }));
  }
}

describe("a transient failure of D1", () => {
  it.each([
    "D1_ERROR: Network connection lost.",
    "Network connection lost.",
    "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
    "D1_ERROR: D1 DB is overloaded. Too many requests queued.",
    "D1_ERROR: Too many requests queued.",
    "D1_ERROR: D1 DB exceeded its CPU time limit and was reset.",
    "D1_ERROR: D1 DB's isolate exceeded its memory limit and was reset.",
    "D1_ERROR: D1 DB reset because its code was updated.",
    "D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",
    "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
    "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
    "D1_ERROR: The request timed out.",
    "D1_ERROR: Query timeout.",
    "D1_ERROR: Replica disconnected from primary.",
    "D1_ERROR: internal error; reference = 0s8a7d6f",
    "D1_ERROR: Currently processing a long-running export.",
    "D1_ERROR: Currently processing a long-running import.",
    "Connection closed: this Durable Object instance is no longer active",
    'D1_ERROR: {"D1_RESET_DO":true}',
    "D1_ERROR: Failed to parse body as JSON, got: error code: 502",
    "D1_ERROR: Failed to parse body as JSON, got: error code: 1031",
    "D1_ERROR: Failed to parse body as JSON, got: error code: 403",
    "D1_ERROR: Failed to parse body as JSON, got: <!DOCTYPE html>\n<html><title>Temporarily unavailable</title></html>",
    "D1_ERROR: Failed to parse body as JSON, got: ",
    'D1_ERROR: Failed to parse body as JSON, got: {"error":"no such table: SQLITE_ERROR"}',
    "D1_ERROR: database is locked",
    "D1_ERROR: database is locked: SQLITE_BUSY",
    "D1_ERROR: Can't read from request stream because client disconnected.",
  ])("is 503 with Retry-After: %s", async (message) => {
    vi.spyOn(scheduler, "wait").mockResolvedValue();
    const failure = new Error(message);
    await performAll(failing(env.DB, failure), (answer) => {
      expect([UNAVAILABLE, UNAVAILABLE_OR_STORED]).toContainEqual(JSON.parse(answer.text));
      expect(answer.status).toBe(503);
      expect(answer.headers.get("Retry-After")).toBe("1");
      expectLogged("service_unavailable", String(failure.stack));
    });
  });

  it.each(Object.entries(PERFORM))("%s is tried once without an Idempotency-Key", async (_, perform) => {
    let tries = 0;
    const DB = intercepted(env.DB, () => {
      tries++;
      throw new Error("Network connection lost.");
    });
    expect((await perform({ bindings: { DB } })).status).toBe(503);
    expect(tries).toBe(1);
  });

  it("warns of a create that may have been stored, unless it has a key", async () => {
    vi.spyOn(scheduler, "wait").mockResolvedValue();
    const bindings = { DB: failing(env.DB, new Error("Network connection lost.")) };
    const rex = { name: "Rex", categoryId: 1 };
    expectError(await createPet(rex, { bindings }), UNAVAILABLE_OR_STORED);
    expectError(await createPet(rex, { bindings, headers: WITH_KEY }), UNAVAILABLE);
    expectError(await call("/v1/pets", { bindings }), UNAVAILABLE);
    expectError(await call("/v1/pets/1", { bindings }), UNAVAILABLE);
  });
});

describe("any other failure", () => {
  it.each([
    new Error("D1_ERROR: CHECK constraint failed: pets: SQLITE_CONSTRAINT"),
    new Error("D1_ERROR: Exceeded maximum DB size: SQLITE_FULL"),
    new Error("D1_ERROR: Your account has exceeded D1's maximum daily row write limit."),
    new Error("D1_ERROR: no such column: preset: SQLITE_ERROR"),
    new Error('D1_ERROR: near "reset": syntax error at offset 7: SQLITE_ERROR'),
    new Error("D1_ERROR: no such column: reset_at: SQLITE_ERROR"),
    new Error("D1_ERROR: no such table: timeout: SQLITE_ERROR"),
    new Error("D1_ERROR: internal error"),
    new TypeError("Cannot read properties of undefined"),
    "a string: network connection lost",
    { message: "network connection lost" },
    undefined,
    null,
    Symbol("thrown"),
  ])("is a 500 that reveals nothing, and its cause is logged: %s", async (failure) => {
    await performAll(failing(env.DB, failure), (answer) => {
      expectError(answer, INTERNAL);
      expect(answer.headers.has("Retry-After")).toBe(false);
      expectLogged("internal_error", String(failure));
    });
  });

  it.each([
    ["without a prototype", Object.create(null)],
    ["whose toString throws", { toString: thrower }],
    ["whose stack throws", Object.defineProperty(new Error(), "stack", { get: thrower })],
    ["whose stack is not a text", Object.assign(new Error(), { stack: Object.create(null) })],
  ])("may be a thrown value %s", async (_, failure) => {
    await performAll(failing(env.DB, failure), (answer) => {
      expectError(answer, INTERNAL);
      expectLogged("internal_error", "a value that cannot be printed");
    });
  });

  it("is 500 without the database", async () => {
    await performAll(undefined, (answer) => {
      expectError(answer, INTERNAL);
      expectLogged("internal_error", "TypeError");
    });
  });

  it("is 500 before the migrations, and the log names the command that applies them", async () => {
    await reset();
    await performAll(env.DB, (answer) => {
      expectError(answer, INTERNAL);
      expectLogged("internal_error", "no such table");
      expectLogged("internal_error", "npx wrangler d1 migrations apply DB --env <environment> --remote");
    });
  });

  it("is logged with its stack, and with a message of one line", async () => {
    const failure = new Error("D1_ERROR: CHECK constraint failed: pets: SQLITE_CONSTRAINT");
    await call("/v1/pets", { headers, bindings: { DB: failing(env.DB, failure) } });
    expect(failure.stack).toContain("\n    at ");
    expect(JSON.parse(String(log.mock.calls[0]?.[0]))).toMatchObject({
      message: "internal_error: Error: D1_ERROR: CHECK constraint failed: pets: SQLITE_CONSTRAINT",
      cause: failure.stack,
    });
  });
});

describe("a result of D1 without what the statement selects", () => {
  const REX = '{"id":1,"name":"Rex","categoryId":1,"status":"sold"}';

  /** A database that returns these results for every statement. */
  const answering = (results: unknown) =>
    intercepted(env.DB, async <T>() => ({ success: true, meta: {}, results }) as T);

  it.each([
    undefined,
    null,
    {},
    "",
    [{}],
    [null],
    [{ json: null }],
    [{ json: "" }],
    [{ json: 5 }],
    [{ json: "garbage" }],
    [{ json: "{}" }],
    [{ JSON: REX }],
  ])("is 500: %j", async (results) => {
    await performAll(answering(results), (answer) => {
      expectError(answer, INTERNAL);
      expectLogged("internal_error", "D1 did not return a list of rows|without its JSON|did not return the stored row");
    });
  });

  it.each([
    [],
    [{ json: REX }],
    [{ json: REX, matches: null }],
    [{ json: REX, matches: "1" }],
    [{ json: '{"id":null}', matches: 1 }],
  ])("is 500 for createPet: %j", async (...results) => {
    const DB = answering(results.filter((row) => row !== undefined));
    for (const key of [{}, WITH_KEY]) {
      expectError(await createPet({ name: "Rex", categoryId: 1 }, { headers: key, bindings: { DB } }), INTERNAL);
    }
  });

  it("is 500 for listPets if the link to the next page needs an id that is missing", async () => {
    const DB = answering([{ json: '{"id":null}' }, { json: REX }]);
    expectError(await call("/v1/pets?limit=1", { bindings: { DB } }), INTERNAL);
  });
});

it("responds 503 only to a failure that D1 threw", async () => {
  const DB = new Proxy(env.DB, {
    get() {
      throw new Error("Network connection lost.");
    },
  });
  expectError(await call("/v1/pets", { headers, bindings: { DB } }), INTERNAL);
  expectLogged("internal_error", "Network connection lost.");
});

it("leaves nothing half-written, and the next request succeeds", async () => {
  const rex = { name: "Rex", categoryId: 1 };
  await createPet(rex, { bindings: { DB: failing(env.DB, new Error("D1_ERROR: Network connection lost.")) } });
  expect(await countPets()).toBe(0);
  const { status, text } = await createPet(rex);
  expect(status).toBe(201);
  expectBody(await call("/v1/pets"), 200, `[${text}]`);
});

describe("an incomplete body", () => {
  const BROKEN = badRequest("The body is incomplete or malformed.");

  /** A body that fails after a part that is already a complete animal. */
  const broken = (failure: unknown, type?: "bytes") =>
    new ReadableStream({
      ...(type && { type }),
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"name":"Rex","categoryId":1}')),
      pull: (controller) => controller.error(failure),
    } as UnderlyingByteSource);

  it.each([
    new Error("Network connection lost."),
    new Error("The stream was reset."),
    new Error("The request timed out."),
    new TypeError("Premature end of the body"),
    undefined,
  ])("is 400 and not logged: %s", async (failure) => {
    for (const options of [{}, { headers: { "Content-Length": "29" } }]) {
      expectError(await createPet(broken(failure, "bytes"), options), BROKEN);
    }
    expect(log).not.toHaveBeenCalled();
    expect(await countPets()).toBe(0);
  });
});

it("responds without Worker-Version if the version metadata has no binding", async () => {
  const request = new Request(`${ORIGIN}/v1/pets`);
  const { status, headers } = await service.fetch(request, { ...env, VERSION: undefined } as never);
  expect(status).toBe(401);
  expect(headers.has("Worker-Version")).toBe(false);
});
