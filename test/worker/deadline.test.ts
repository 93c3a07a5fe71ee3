// The deadline for the database: 20 seconds from the first statement of a request, over all tries.

import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, type MockInstance, vi } from "vitest";
import { intercepted } from "./binding.ts";
import { createPet, expectError, PERFORM, UNAVAILABLE, UNAVAILABLE_AFTER_POST } from "./call.ts";

const LOST = new Error("D1_ERROR: Network connection lost.");
const WITH_KEY = { "Idempotency-Key": "key" };

let log: MockInstance<typeof console.error>;
beforeEach(() => {
  log = vi.spyOn(console, "error").mockReturnValue();
  vi.spyOn(scheduler, "wait").mockResolvedValue();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** A database that answers when the test says so, and the statements that it was sent. */
function slow() {
  const statements: { execute: () => Promise<void>; fail: (failure: Error) => void }[] = [];
  const DB = intercepted(env.DB, (_, execute) => {
    const { promise, resolve, reject } = Promise.withResolvers<never>();
    statements.push({ execute: () => execute().then((result) => resolve(result as never)), fail: reject });
    return promise;
  });
  /** The statement with this number, once it is sent. */
  const sent = async (number: number) => {
    while (!statements[number - 1]) await new Promise((resolve) => setImmediate(resolve));
    return statements[number - 1] ?? expect.fail();
  };
  return { bindings: { DB }, statements, sent };
}

const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);

it.each(Object.entries(PERFORM))("%s gets a 503 if D1 does not answer", async (name, perform) => {
  const { bindings, statements, sent } = slow();
  const answering = perform({ bindings });
  const { fail } = await sent(1);
  await pass(19_999);
  expect(log).not.toHaveBeenCalled();
  await pass(1);
  const answer = await answering;
  expectError(answer, name === "createPet" ? UNAVAILABLE_AFTER_POST : UNAVAILABLE);
  expect(answer.headers.get("Retry-After")).toBe("1");
  const logged = log.mock.calls.map(([line]) => JSON.parse(line));
  const message = "service_unavailable: Error: D1 timed out: no answer within 20 s.";
  expect(logged).toEqual([expect.objectContaining({ message, failure: "service_unavailable" })]);
  fail(LOST); // which must not be an unhandled rejection
  await pass(0);
  expect(statements.length).toBe(1);
});

it("a create with a key is tried again until the deadline of its first try, and not after it", async () => {
  const { bindings, statements, sent } = slow();
  const answering = createPet({ name: "Rex", categoryId: 1 }, { bindings, headers: WITH_KEY });
  const first = await sent(1);
  await pass(15_000);
  first.fail(LOST);
  const second = await sent(2);
  await pass(5_000);
  expectError(await answering, UNAVAILABLE);
  second.fail(LOST);
  await pass(0);
  expect(statements.length).toBe(2);
});

it("a create with a key is not tried again if the deadline passes before its next try", async () => {
  vi.mocked(scheduler.wait).mockReturnValue(new Promise(() => {}));
  const { bindings, statements, sent } = slow();
  const answering = createPet({ name: "Rex", categoryId: 1 }, { bindings, headers: WITH_KEY });
  (await sent(1)).fail(LOST);
  await pass(20_000);
  expectError(await answering, UNAVAILABLE);
  expect(statements.length).toBe(1);
});

it("a create with a key that D1 answers at the second try is 201", async () => {
  const { bindings, sent } = slow();
  const answering = createPet({ name: "Rex", categoryId: 1 }, { bindings, headers: WITH_KEY });
  const first = await sent(1);
  await pass(15_000);
  first.fail(LOST);
  await (await sent(2)).execute();
  expect((await answering).status).toBe(201);
  expect(log).not.toHaveBeenCalled();
});
