// The client that callers save: through a network that fails, and with responses that a test makes up.

import { once } from "node:events";
import { beforeEach, expect, expectTypeOf, it, vi } from "vitest";
import type * as z from "zod/mini";
import type * as service from "../../src/pets/pet.ts";
import { AnimalStore, AnimalStoreError, type NewPet, type Pet, toJson } from "../../src/site/client.ts";
import { INT64 } from "../../src/values/int64.ts";
import { startServer } from "../server.ts";
import { openWay, RAY } from "./network.ts";
import { API_KEY, ORIGIN } from "./service.ts";

const LUNA = { name: "Luna", categoryId: INT64.maximum };
const animal = (id: bigint) => ({ ...LUNA, id, status: "sold" });

/** The seconds that the client has waited before it sent a request again. In fact, these were milliseconds. */
let waits: number[];
beforeEach(() => {
  waits = [];
  const { setTimeout } = globalThis;
  const wait = (wake: () => void, milliseconds = 0, ...others: []) => {
    // Node's fetch has timers, too.
    if (others.length > 0 || milliseconds % 1000 > 0) return setTimeout(wake, milliseconds, ...others);
    return setTimeout(wake, waits[waits.push(milliseconds / 1000) - 1]);
  };
  vi.spyOn(globalThis, "setTimeout").mockImplementation(wait as typeof setTimeout);
});

const storeAt = (baseUrl: string) => new AnimalStore({ baseUrl, apiKey: API_KEY });

/** A client that gets these responses, and the bookmarks that it sends. */
function storeWith(...responses: ((signal: AbortSignal) => Response | Promise<Response>)[]) {
  const bookmarks: (string | null)[] = [];
  const fetch = async (_: unknown, { headers, signal }: RequestInit = {}) => {
    const respond = responses[bookmarks.push(new Headers(headers).get("x-d1-bookmark")) - 1];
    return respond?.(signal ?? expect.fail("There is no signal.")) ?? expect.fail("There is no response.");
  };
  const store = new AnimalStore({ baseUrl: `${ORIGIN}/v1`, apiKey: "a-key", fetch: fetch as typeof globalThis.fetch });
  return { store, bookmarks };
}
const answer =
  (body: unknown, headers = {}, status = 200) =>
  () =>
    new Response(toJson(body), { status, headers });

const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail("It has succeeded."),
    (error) => error,
  );

it("has the types of the service", () => {
  expectTypeOf<Pet>().toEqualTypeOf<z.infer<typeof service.Pet>>();
  expectTypeOf<NewPet>().toEqualTypeOf<z.input<typeof service.NewPet>>();
});

it.each([
  { failures: ["cut off", "429", "503"], expected: [1, 2, 4] },
  { failures: ["silent", "shortened"], expected: [1, 2] },
])("adds one animal, exactly, if its requests meet $failures", async ({ failures, expected }) => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => timeout(milliseconds / 20));
  const { baseUrl, ids } = openWay(...failures);
  const luna = await storeAt(baseUrl).createPet(LUNA);
  expect(AbortSignal.timeout).toHaveBeenCalledWith(30_000);
  expect(luna).toEqual({ ...LUNA, id: BigInt(ids[0] ?? 0), status: "available" });
  expect([ids.length, new Set(ids).size, waits]).toEqual([failures.length + 1, 1, expected]);
  expect(await storeAt(baseUrl).getPet(luna.id)).toEqual(luna);
  for (const id of [INT64.minimum, 1n, INT64.maximum]) expect(await storeAt(baseUrl).getPet(id)).toBeUndefined();
});

it.each([
  ["wrong key", { status: 401, code: "unauthorized", message: "The API key is not valid." }],
  ["redirect", { status: 302, message: "Status 302: " }],
  ["html", { status: 201, message: "Status 201: <h1>Welcome</h1>" }],
  ["json", { status: 201, message: 'Status 201: {"status":"ok"}' }],
])("fails at once after a response that it does not expect: %s", async (name, facts) => {
  const way = openWay(name);
  const idempotencyKey = `a, ${crypto.randomUUID()}`;
  const error = await errorOf(storeAt(way.baseUrl).createPet(LUNA, { idempotencyKey }));
  expect(error).toBeInstanceOf(AnimalStoreError);
  expect(error).toMatchObject({ code: undefined, ...facts, ray: RAY, idempotencyKey });
  expect(way.requests).toBe(1);
});

it("gives up in the end, with why there was no response, and the key of a create", async () => {
  const { origin, close } = await startServer();
  close();
  const error = await errorOf(storeAt(`${origin}/v1`).createPet(LUNA));
  expect(error).toMatchObject({ status: undefined, idempotencyKey: expect.stringMatching(/^[\da-f-]{36}$/) });
  expect(error.message).toContain("ECONNREFUSED");
  expect(waits).toEqual([1, 2, 4, 8, 16]);
});

it.each([
  ["a 429 without Retry-After: after a minute", answer("", {}, 429), [60]],
  ["a 503 with Retry-After: after as many seconds", answer("", { "Retry-After": "30" }, 503), [30]],
  ["a 502: after a second", answer("", {}, 502), [1]],
])("reads again after %s", async (_, first, expected) => {
  expect(await storeWith(first, answer([])).store.getPet(1n)).toBeUndefined();
  expect(waits).toEqual(expected);
});

it("fails at once if it would have to wait for more than a minute", async () => {
  const { store } = storeWith(answer("", { "Retry-After": "61" }, 503));
  expect(await errorOf(store.getPet(1n))).toMatchObject({ status: 503, retryAfter: 61 });
});

it.each([[animal(2n), animal(2n)], [animal(1n)], [{ id: 2n }], {}].map(toJson))(
  "does not list %s after 1",
  async (page) => {
    const { store } = storeWith(() => new Response(page));
    const error = await errorOf(Array.fromAsync(store.listPets({ after: 1n })));
    expect(error).toMatchObject({ status: 200, message: `Status 200: ${page}` });
  },
);

it("reads what was written before: after the last bookmark or, if that is not known, the latest", async () => {
  const to = (bookmark: string) => answer([], { "x-d1-bookmark": bookmark });
  const lost = new ReadableStream({ start: (controller) => controller.error(new Error("Lost")) });
  const cutOff = () => new Response(lost, { headers: { "x-d1-bookmark": "3" } });
  const { store, bookmarks } = storeWith(to("1"), to("2"), cutOff, ...["4", "5", "6", "7", "8"].map(to));
  for (let i = 0; i < 3; i++) await store.getPet(1n);
  await Promise.all([store.getPet(1n), store.getPet(1n)]);
  for (let i = 0; i < 2; i++) await store.getPet(1n);
  expect(bookmarks).toEqual(["latest", "1", "2", "latest", "4", "4", "latest", "7"]);
});

const never = (signal: AbortSignal) => once(signal, "abort").then(() => Promise.reject(signal.reason));

it.each([
  ["before it sends anything", [], answer([])],
  ["while it waits for a response", [], never],
  ["while it waits for a retry", [30], answer("", { "Retry-After": "30" }, 503)],
])("ends when its signal aborts %s, with the reason", async (when, expected, response) => {
  const reason = new Error("No longer needed");
  const controller = new AbortController();
  const { store, bookmarks } = storeWith(response);
  // No wait ends by itself.
  vi.mocked(setTimeout).mockImplementation((_, milliseconds = 0) => waits.push(milliseconds / 1000) as never);
  if (/before/.test(when)) controller.abort(reason);
  const call = errorOf(store.getPet(1n, { signal: controller.signal }));
  await new Promise(setImmediate);
  controller.abort(reason);
  expect(await call).toBe(reason);
  expect([bookmarks.length, waits]).toEqual([/before/.test(when) ? 0 : 1, expected]);
});

it("lists no more of a page when its signal has aborted", async () => {
  const controller = new AbortController();
  const { store } = storeWith(answer([animal(1n), animal(2n)]));
  const listed = store.listPets({ signal: controller.signal });
  expect((await listed.next()).value).toEqual(animal(1n));
  controller.abort();
  expect(await errorOf(listed.next())).toBe(controller.signal.reason);
});

it("rejects what the program must not do, before it sends anything, and has its API key in no message", async () => {
  const { store, bookmarks } = storeWith(answer("a-key a-key".padEnd(500), {}, 418));
  // @ts-expect-error
  await expect(store.createPet({ ...LUNA, categoryId: 2 ** 53 })).rejects.toThrow("categoryId must be a bigint.");
  for (const options of [{ apiKey: "" }, { apiKey: "a-\nkey" }, { baseUrl: ORIGIN }, { baseUrl: "a-key" }]) {
    const make = () => new AnimalStore({ baseUrl: `${ORIGIN}/v1`, apiKey: "a-key", ...options });
    expect(make).toThrow(/^(apiKey|baseUrl) (is|must) (?!.*a-)/);
  }
  expect(bookmarks).toEqual([]);
  expect((await errorOf(store.getPet(7 as never))).message).toMatch(/^Status 418: "\(API key\) \(API key\) {168}$/);
});
