import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { failing } from "./binding.ts";
import { type Call, call, countStored, create, expectBody, expectError, OPERATIONS, UNAVAILABLE } from "./service.ts";

const INTERNAL = {
  code: "internal_error",
  message: "The service failed to answer; the failure has been logged.",
  status: 500,
};

let log: ReturnType<typeof vi.spyOn>;
beforeEach(() => {
  log = vi.spyOn(console, "error").mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe.each([
  ...Object.entries(OPERATIONS),
  ["listPets by status", (options: Call) => call("/v1/pets?status=sold", options)] as const,
])("%s", (_, perform) => {
  it.each([
    "D1_ERROR: Network connection lost.",
    "Network connection lost.",
    "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
    "D1_ERROR: D1 DB is overloaded. Too many requests queued.",
    "D1_ERROR: D1 DB reset because its code was updated.",
    "D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",
    "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
    "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
  ])("answers 503 with Retry-After when D1 fails in passing: %s", async (message) => {
    const failure = new Error(message);
    const answer = await perform({ bindings: { DB: failing(env.DB, failure) } });
    expectError(answer, UNAVAILABLE);
    expect(answer.headers.get("Retry-After")).toBe("1");
    expect(log.mock.calls).toEqual([[failure]]);
  });

  it.each([
    new Error("D1_ERROR: no such table: pets: SQLITE_ERROR"),
    new Error("D1_ERROR: CHECK constraint failed: pets: SQLITE_CONSTRAINT"),
    new TypeError("Cannot read properties of undefined"),
    "a string, thrown",
  ])("answers a 500 that leaks nothing, and logs the cause: %s", async (failure) => {
    const answer = await perform({ bindings: { DB: failing(env.DB, failure) } });
    expectError(answer, INTERNAL);
    expect(answer.headers.has("Retry-After")).toBe(false);
    expect(log.mock.calls).toEqual([[failure]]);
  });

  it("answers 500 without the database", async () => {
    expectError(await perform({ bindings: { DB: undefined } }), INTERNAL);
    expect(log).toHaveBeenCalledOnce();
  });

  it("answers 500 before the migrations", async () => {
    await env.DB.exec("DROP TABLE pets");
    expectError(await perform({}), INTERNAL);
    expect(log).toHaveBeenCalledOnce();
  });
});

it("goes on after a fault, with nothing half-written", async () => {
  const rex = { name: "Rex", categoryId: 1 };
  await create(rex, { bindings: { DB: failing(env.DB, new Error("D1_ERROR: Network connection lost.")) } });
  expect(await countStored()).toBe(0);
  const { status, text } = await create(rex);
  expect(status).toBe(201);
  expectBody(await call("/v1/pets"), 200, `[${text}]`);
});
