// The deadline for the database: 20 seconds from the first statement of a request, over all tries.

import { afterEach, beforeEach, expect, it, type MockInstance, vi } from "vitest";
import { intercepted } from "./binding.ts";
import { call, createPet, expectError, REX } from "./call.ts";

let log: MockInstance<typeof console.error>;
beforeEach(() => {
  log = vi.spyOn(console, "error").mockReturnValue();
  vi.spyOn(scheduler, "wait").mockResolvedValue();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A database whose statements fail when the test says so. */
function slow() {
  const statements: ((failure: Error) => void)[] = [];
  const DB = intercepted(() => {
    const { promise, reject } = Promise.withResolvers<never>();
    statements.push(reject);
    return promise;
  });
  const sent = (count: number) => vi.waitUntil(() => statements.length === count, { interval: 0 });
  const loseLast = () => statements.at(-1)?.(new Error("D1_ERROR: Network connection lost."));
  return { bindings: { DB }, statements, sent, loseLast };
}

const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);

const createWithKey = (bindings: { DB: D1Database }) =>
  createPet(REX, { bindings, headers: { "Idempotency-Key": "key" } });

it("a request is 503 if D1 does not answer", async () => {
  const { bindings, sent, loseLast } = slow();
  const answering = call("/v1/pets", { bindings });
  await sent(1);
  await pass(19_999);
  expect(log).not.toHaveBeenCalled();
  await pass(1);
  expectError(await answering, "store_unavailable");
  const message = "store_unavailable: Error: D1 timed out: no answer within 20 s.";
  expect(JSON.parse(log.mock.lastCall?.[0])).toMatchObject({ message });
  loseLast(); // which must not be an unhandled rejection
  await pass(0);
});

it("a create without a key that D1 does not answer may have been stored", async () => {
  const { bindings, sent } = slow();
  const answering = createPet(REX, { bindings });
  await sent(1);
  await pass(20_000);
  expectError(await answering, "outcome_unknown");
});

it("a request leaves no timer behind if D1 answers", async () => {
  await call("/v1/pets");
  expect(vi.getTimerCount()).toBe(0);
});

it("a create with a key is tried again until the deadline of its first try, and not after it", async () => {
  const { bindings, statements, sent, loseLast } = slow();
  const answering = createWithKey(bindings);
  await sent(1);
  await pass(15_000);
  loseLast();
  await sent(2);
  await pass(5_000);
  expectError(await answering, "store_unavailable");
  loseLast();
  await pass(0);
  expect(statements.length).toBe(2);
});

it("a create with a key ends at the deadline, even if it waits for its next try", async () => {
  vi.mocked(scheduler.wait).mockReturnValue(new Promise(() => {}));
  const { bindings, statements, sent, loseLast } = slow();
  const answering = createWithKey(bindings);
  await sent(1);
  loseLast();
  await pass(20_000);
  expectError(await answering, "store_unavailable");
  expect(statements.length).toBe(1);
});
