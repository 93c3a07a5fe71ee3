import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { failing } from "./binding.ts";
import {
  badRequest,
  call,
  countPets,
  createPet,
  expectBody,
  expectError,
  OPERATIONS,
  type RequestOptions,
  UNAVAILABLE,
} from "./service.ts";

const INTERNAL = {
  code: "internal_error",
  message: "The service failed to answer; the failure has been logged.",
  status: 500,
};

let log: MockInstance<typeof console.error>;
beforeEach(() => {
  log = vi.spyOn(console, "error").mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Asserts that one line of JSON was logged, which names the failure and its cause. */
function expectLogged(failure: string, cause: string): void {
  const lines = log.mock.calls.map(([line]) => line);
  expect(lines).toEqual([expect.not.stringContaining("\n")]);
  const logged = JSON.parse(String(lines[0]));
  expect(logged).toEqual({
    failure,
    cause: expect.stringContaining(cause),
    method: expect.stringMatching(/^[A-Z]+$/),
    path: expect.stringMatching(/^\/v1\/[^?]+$/),
    ray: "8f1b2c3d4e5f6a7b-AMS",
  });
}

const headers = { "cf-ray": "8f1b2c3d4e5f6a7b-AMS" };

describe.each([
  ...Object.entries(OPERATIONS),
  ["listPets by status", (options: RequestOptions) => call("/v1/pets?status=sold", options)] as const,
])("%s", (_, perform) => {
  it.each([
    "D1_ERROR: Network connection lost.",
    "Network connection lost.",
    "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
    "D1_ERROR: D1 DB is overloaded. Too many requests queued.",
    "D1_ERROR: Too many requests queued.",
    "D1_ERROR: D1 DB reset because its code was updated.",
    "D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",
    "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
    "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
    "D1_ERROR: The request timed out.",
    "D1_ERROR: Replica disconnected from primary.",
    "D1_ERROR: internal error; reference = 0s8a7d6f",
    "D1_ERROR: Currently processing a long-running export.",
    "D1_ERROR: Currently processing a long-running import.",
    "Connection closed: this Durable Object instance is no longer active",
    "D1_ERROR: Failed to parse body as JSON, got: error code: 502",
    "D1_ERROR: database is locked: SQLITE_BUSY",
    "D1_ERROR: Can't read from request stream because client disconnected.",
  ])("answers 503 with Retry-After when D1 fails for a while: %s", async (message) => {
    const answer = await perform({ headers, bindings: { DB: failing(env.DB, new Error(message)) } });
    expectError(answer, UNAVAILABLE);
    expect(answer.headers.get("Retry-After")).toBe("1");
    expectLogged("service_unavailable", message);
  });

  it.each([
    new Error("D1_ERROR: no such table: pets: SQLITE_ERROR"),
    new Error("D1_ERROR: CHECK constraint failed: pets: SQLITE_CONSTRAINT"),
    new Error("D1_ERROR: Exceeded maximum DB size: SQLITE_FULL"),
    new Error("D1_ERROR: Your account has exceeded D1's maximum daily row write limit."),
    new Error("D1_ERROR: Failed to parse body as JSON, got: error code: 403"),
    new Error("D1_ERROR: no such column: preset: SQLITE_ERROR"),
    new Error("D1_ERROR: no such column: reset_at: SQLITE_ERROR"),
    new Error("D1_ERROR: internal error"),
    new TypeError("Cannot read properties of undefined"),
    "a string, thrown",
  ])("answers a 500 that leaks nothing, and logs the cause: %s", async (failure) => {
    const answer = await perform({ headers, bindings: { DB: failing(env.DB, failure) } });
    expectError(answer, INTERNAL);
    expect(answer.headers.has("Retry-After")).toBe(false);
    expectLogged("internal_error", String(failure));
  });

  it("answers 500 without the database", async () => {
    expectError(await perform({ headers, bindings: { DB: undefined } }), INTERNAL);
    expectLogged("internal_error", "TypeError");
  });

  it("answers 500 before the migrations", async () => {
    await reset();
    expectError(await perform({ headers }), INTERNAL);
    expectLogged("internal_error", "no such table");
  });
});

it("logs where the cause was thrown", async () => {
  const failure = new Error("D1_ERROR: no such table: pets: SQLITE_ERROR");
  await call("/v1/pets", { headers, bindings: { DB: failing(env.DB, failure) } });
  expect(failure.stack).toContain("\n    at ");
  expect(JSON.parse(String(log.mock.calls[0]?.[0]))).toMatchObject({ cause: failure.stack });
});

it.each(["http://localhost:8787", "http://127.0.0.1:9000", "http://[::1]"])(
  "says in the log of a local service, at %s, what may have become of its store",
  async (origin) => {
    const failure = new Error("internal error; reference = 0s8a7d6f");
    await call("/v1/pets", { origin, bindings: { DB: failing(env.DB, failure) } });
    expect(JSON.parse(String(log.mock.calls[0]?.[0])).hint).toContain("Was .wrangler/state removed");
  },
);

it("logs no query", async () => {
  await call("/v1/pets?status=sold", { headers, bindings: { DB: undefined } });
  expect(JSON.parse(String(log.mock.calls[0]?.[0]))).toMatchObject({ method: "GET", path: "/v1/pets" });
});

it("takes a failure for a transient one only where D1 threw it", async () => {
  const DB = new Proxy(env.DB, {
    get() {
      throw new Error("Network connection lost.");
    },
  });
  expectError(await call("/v1/pets", { headers, bindings: { DB } }), INTERNAL);
  expectLogged("internal_error", "Network connection lost.");
});

it("goes on after a fault, with nothing half-written", async () => {
  const rex = { name: "Rex", categoryId: 1 };
  await createPet(rex, { bindings: { DB: failing(env.DB, new Error("D1_ERROR: Network connection lost.")) } });
  expect(await countPets()).toBe(0);
  const { status, text } = await createPet(rex);
  expect(status).toBe(201);
  expectBody(await call("/v1/pets"), 200, `[${text}]`);
});

describe("a body that breaks off", () => {
  const BROKEN = badRequest("The body cannot be read to its end: it broke off, or is not sent as HTTP has it.");

  /** A body that fails after a piece that could be an animal already. */
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
  ])("is the caller's fault, and not logged: %s", async (failure) => {
    for (const options of [{}, { headers: { "Content-Length": "29" } }]) {
      expectError(await createPet(broken(failure, "bytes"), options), BROKEN);
    }
    expect(log).not.toHaveBeenCalled();
    expect(await countPets()).toBe(0);
  });
});
