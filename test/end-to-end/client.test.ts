// The client that callers save: through a network that fails, and with responses that a test makes up.

import { once } from "node:events";
import { beforeEach, expect, expectTypeOf, it, vi } from "vitest";
import type * as z from "zod/mini";
import { STATUS } from "../../src/http/errors.ts";
import type * as operations from "../../src/pets/operations.ts";
import type * as service from "../../src/pets/pet.ts";
import type { PetQuery } from "../../src/pets/pet-query.ts";
import type { CallOptions, ErrorCode, NewPet, Pet, PetStatus } from "../../src/site/client.ts";
import { AnimalStore, AnimalStoreError, toJson } from "../../src/site/client.ts";
import { INT64 } from "../../src/values/int64.ts";
import { startServer } from "../server.ts";
import { openProxy, RAY } from "./network.ts";
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

type Respond = (signal: AbortSignal) => Response | Promise<Response>;

/** A client that gets these responses, and the bookmarks that it sends. */
function storeWith(...responses: Respond[]) {
  const bookmarks: string[] = [];
  const fetch = async (_: unknown, { headers, signal }: RequestInit = {}) => {
    const respond = responses[bookmarks.push(new Headers(headers).get("x-d1-bookmark") ?? "") - 1];
    return respond?.(signal ?? expect.fail("There is no signal.")) ?? expect.fail("There is no response.");
  };
  const store = new AnimalStore({ baseUrl: `${ORIGIN}/v1`, apiKey: "a-key", fetch: fetch as typeof globalThis.fetch });
  return { store, bookmarks };
}
const answer =
  (body: unknown, headers = {}, status = 200) =>
  () =>
    new Response(typeof body === "string" ? body : toJson(body), { status, headers });
const failure = (code: ErrorCode, headers = {}) => answer({ code, message: code }, headers, STATUS[code]);
const never = (signal: AbortSignal) => once(signal, "abort").then(() => Promise.reject(signal.reason));

const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail("It has succeeded."),
    (error) => error,
  );

it("has the types of the service", () => {
  expectTypeOf<Pet>().toEqualTypeOf<z.infer<typeof service.Pet>>();
  expectTypeOf<NewPet>().toEqualTypeOf<z.input<typeof service.NewPet>>();
  expectTypeOf<ErrorCode>().toEqualTypeOf<keyof typeof STATUS>();
});

it("has a method for each operation, and an option for each query parameter", () => {
  type Exports = typeof operations;
  type Operation<Name extends keyof Exports> = Exports[Name] extends (...parameters: never[]) => unknown ? Name : never;
  expectTypeOf<{ [Name in keyof Exports]: Operation<Name> }[keyof Exports]>().toEqualTypeOf<keyof AnimalStore>();
  type Options = Parameters<AnimalStore["listPets"]>[0] & {};
  expectTypeOf<Omit<Options, keyof CallOptions>>().toEqualTypeOf<Omit<PetQuery, "limit" | "id">>();
});

it.each([
  { failures: ["cut off", "429", "503"], expected: [1, 2, 4] },
  { failures: ["silent", "shortened"], expected: [1, 2] },
])("adds one animal, exactly, if its requests meet $failures", async ({ failures, expected }) => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => timeout(milliseconds / 20));
  const { baseUrl, ids } = openProxy(...failures);
  const luna = await storeAt(`${baseUrl}//`).createPet(LUNA);
  expect(AbortSignal.timeout).toHaveBeenCalledWith(30_000);
  expect(luna).toEqual({ ...LUNA, id: BigInt(ids[0] ?? 0), status: "available" });
  expect([ids.length, new Set(ids).size, waits]).toEqual([failures.length + 1, 1, expected]);
  expect(await storeAt(baseUrl).getPet(luna.id)).toEqual(luna);
  const list = (status?: PetStatus) => Array.fromAsync(storeAt(baseUrl).listPets({ status, after: luna.id - 1n }));
  for (const status of [undefined, "available"] as const) expect((await list(status))[0]).toEqual(luna);
  expect(await list("sold")).not.toContainEqual(luna);
  for (const id of [INT64.minimum, 1n, INT64.maximum]) expect(await storeAt(baseUrl).getPet(id)).toBeUndefined();
});

it("fails at once after a redirect, which it does not follow", async () => {
  const proxy = openProxy("redirect");
  const idempotencyKey = `a, ${crypto.randomUUID()}`;
  const error = await errorOf(storeAt(proxy.baseUrl).createPet(LUNA, { idempotencyKey }));
  expect(error).toBeInstanceOf(AnimalStoreError);
  const facts = { status: 302, code: undefined, message: "Status 302: ", mayBeAdded: true };
  expect(error).toMatchObject({ ...facts, ray: RAY, idempotencyKey });
  expect(proxy.requests).toBe(1);
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
  ["a 503 with Retry-After: after as many seconds", failure("closed", { "Retry-After": "30" }), [30]],
  ["a 502: after a second", answer("", {}, 502), [1]],
  ["a web page: after a second", answer("<h1>Welcome</h1>"), [1]],
  ["an error that was cut off: after a second", answer('{"code":"invalid_req', {}, 400), [1]],
])("reads again after %s", async (_, first, expected) => {
  expect(await storeWith(first, answer([])).store.getPet(1n)).toBeUndefined();
  expect(waits).toEqual(expected);
});

it.each([
  ["a wrong key", failure("api_key_invalid"), { status: 401, code: "api_key_invalid" }],
  ["a wrong address", answer("<h1>Not found</h1>", {}, 404), { status: 404, code: undefined }],
  ["a Retry-After of more than a minute", failure("closed", { "Retry-After": "61" }), { status: 503, retryAfter: 61 }],
])("fails at once after %s", async (_, response, facts) => {
  expect(await errorOf(storeWith(response).store.getPet(1n))).toMatchObject({ ...facts, mayBeAdded: undefined });
});

it.each<[mayBeAdded: boolean, first: ErrorCode | "no response", last: ErrorCode]>([
  [false, "closed", "closed"],
  [false, "rate_limited", "api_key_invalid"],
  [true, "no response", "closed"],
  [true, "internal_error", "api_key_invalid"],
  [true, "store_unavailable", "store_unavailable"],
])("says whether a failed create may be added: %s after %s and %s", async (mayBeAdded, first, last) => {
  const lost = () => Promise.reject(new Error("Lost"));
  const { store } = storeWith(first === "no response" ? lost : failure(first), ...Array(5).fill(failure(last)));
  expect(await errorOf(store.createPet(LUNA))).toMatchObject({ code: last, mayBeAdded });
});

it("ends a call at its timeout, with what it knows, and begins no wait that would pass it", async () => {
  const timeout = vi.spyOn(AbortSignal, "timeout");
  const now = vi.spyOn(performance, "now").mockImplementation(() => 1000 * waits.reduce((sum, wait) => sum + wait, 0));
  const known = { status: 503, code: "closed", idempotencyKey: "a", mayBeAdded: false };
  const create = (milliseconds: number, ...responses: Respond[]) =>
    errorOf(storeWith(...responses).store.createPet(LUNA, { timeout: milliseconds, idempotencyKey: "a" }));
  expect(await create(10_000, ...Array(4).fill(failure("closed")))).toMatchObject(known);
  expect(waits.splice(0)).toEqual([1, 2, 4]);
  expect(timeout.mock.calls.flat()).toEqual([10_000, 9000, 7000, 3000]);
  const message = expect.stringMatching(/^No complete response: /); // "closed" would not be true of the last request.
  expect(await create(1020, failure("closed"), never)).toMatchObject({ ...known, message, mayBeAdded: true });
  for (const milliseconds of [0, 0, 0, 2000]) now.mockReturnValueOnce(milliseconds); // It wakes too late.
  expect(await create(1500, failure("closed"))).toMatchObject(known);

  // What the program does between two pages does not count.
  const page = Array.from({ length: 100 }, (_, i) => animal(BigInt(i + 1)));
  const { store } = storeWith(answer(page), answer([]));
  for await (const { id } of store.listPets({ timeout: 1500 })) if (id === 100n) waits.push(3600);
  expect(timeout.mock.calls.flat().slice(-2)).toEqual([1500, 1500]);
});

it.each([[animal(2n), animal(2n)], [animal(1n)], [{ id: 2n }], {}].map(toJson))(
  "does not list %s after 1, nor get it as the animal 0",
  async (page) => {
    const { store } = storeWith(...Array(12).fill(answer(page)));
    const facts = { status: 200, message: `Status 200: ${page}` };
    expect(await errorOf(Array.fromAsync(store.listPets({ after: 1n })))).toMatchObject(facts);
    expect(await errorOf(store.getPet(0n))).toMatchObject(facts);
  },
);

const REPLACED = "9"; // a bookmark of a database that was replaced
const RESPONSES = {
  read: answer([]),
  create: answer(animal(1n), {}, 201),
  "lost create": failure("store_unavailable", { "Retry-After": "61" }),
};
type Kind = keyof typeof RESPONSES;

/**
 * Begins and ends calls, in an order of their numbers, and returns the bookmarks that they send. Fails if one does not
 * read what was written before, or sends REPLACED after a failure. The first call, a read, gets REPLACED; the others
 * get the number of creates that they see.
 */
async function overlap(order: string, ...kinds: Kind[]): Promise<string[]> {
  let [written, hasFailed] = [0, false];
  const responses = Array.from(order, () => Promise.withResolvers<Response>());
  const respond = (response: PromiseWithResolvers<Response>) => () => response.promise;
  const { store, bookmarks } = storeWith(...responses.map(respond));
  const begin = (number: number) => {
    const kind = kinds[number - 1] ?? "read";
    const call = kind === "read" ? store.getPet(1n) : store.createPet(LUNA);
    const bookmark = bookmarks[number] ?? "";
    const isRight = bookmark === "latest" || (bookmark >= `${written}` && !(hasFailed && bookmark === REPLACED));
    expect(isRight, `${number} of ${order} (${kinds}) sends ${bookmark}`).toBe(true);
    const seen = bookmark === "latest" ? `${written}` : bookmark; // the oldest state that it can read
    return () => {
      if (kind !== "read") written++;
      hasFailed ||= kind === "lost create";
      const response = RESPONSES[kind]();
      // D1 returns the greater bookmark.
      const isReplaced = number === 0 || bookmark === REPLACED;
      response.headers.set("x-d1-bookmark", isReplaced ? REPLACED : kind === "read" ? seen : `${written}`);
      responses[number]?.resolve(response);
      return call.catch(() => {});
    };
  };
  const ends: (() => Promise<unknown>)[] = [];
  for (const number of Array.from(order, Number)) {
    if (number in ends) await ends[number]?.();
    else ends[number] = begin(number);
  }
  return bookmarks;
}

it("reads what it has written, in whatever order calls overlap", async () => {
  const kinds: Kind[] = ["read", "create", "lost create"];
  const orders =
    "112233 112323 112332 121233 121323 121332 122133 122313 122331 123123 123132 123213 123231 123312 123321";
  for (const order of orders.split(" "))
    for (const a of kinds) for (const b of kinds) for (const c of kinds) await overlap(`00${order}445`, a, b, c);
});

it("sends bookmarks again soon after a failure, even if creates always overlap", async () => {
  const kinds: Kind[] = ["lost create", "create", "read", "create", "create", "create", "create"];
  const bookmarks = await overlap("001231425465738", ...kinds);
  expect(bookmarks.map((bookmark) => bookmark === "latest").indexOf(false, 4)).toBe(7);
  expect(bookmarks[8]).not.toBe("latest");
});

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

it("rejects what the program must not do, before it sends anything", async () => {
  const { store, bookmarks } = storeWith();
  const beyond = INT64.maximum + 1n;
  // @ts-expect-error
  await expect(store.createPet({ ...LUNA, categoryId: 2 ** 53 })).rejects.toThrow("categoryId must be a bigint in the");
  await expect(store.createPet({ ...LUNA, categoryId: beyond })).rejects.toThrow(TypeError);
  await expect(store.getPet(-beyond - 1n)).rejects.toThrow(new TypeError("id must be a bigint in the range of int64."));
  await expect(store.listPets({ after: beyond }).next()).rejects.toThrow(TypeError);
  for (const timeout of [0, -1, 1.5, Number.NaN, "1000" as never])
    await expect(store.getPet(1n, { timeout })).rejects.toThrow(new TypeError("timeout must be a positive integer."));
  expect(bookmarks).toEqual([]);
});

it("needs an API key, and a base URL to which it is safe to send", () => {
  const make = (options: object) => () => new AnimalStore({ baseUrl: `${ORIGIN}/v1`, apiKey: "a-key", ...options });
  expect(make({ apiKey: "" })).toThrow("apiKey is empty.");
  expect(make({ apiKey: "a-\nkey" })).toThrow(/^apiKey must be an API key\.$/);
  const refused = "baseUrl must be an https URL, or an http URL of localhost, that ends in /v1.";
  const wrong = ["", "a-key", "https://a.example", "https://a.example/v1?", "https://a:b@a.example/v1", "https:///v1"];
  for (const baseUrl of [...wrong, "http://a.example/v1", "http://localhost.a.example/v1", "http://127.0.0.256/v1"])
    expect(make({ baseUrl })).toThrow(new TypeError(refused));
  for (const right of ["https://a.example/b", "http://localhost:8787", "http://127.0.0.2", "http://[::1]"])
    expect(make({ baseUrl: `${right}/v1/` })).not.toThrow();
});

it("has its API key in no error, and short messages", async () => {
  const [text, headers] = ["a-key".padEnd(999), { "cf-ray": "a-key" }];
  const { store } = storeWith(answer({ code: "a-key", message: text }, headers, 418), answer(text, headers, 418));
  const [code, ray] = ["(API key)", "(API key)"];
  expect(await errorOf(store.getPet(7n))).toMatchObject({ code, ray, message: "(API key)".padEnd(500) });
  expect(await errorOf(store.getPet(7n))).toMatchObject({ ray, message: "Status 418: (API key)".padEnd(500) });
});
