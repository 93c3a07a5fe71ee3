import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { intercepted } from "./binding.ts";
import { type Answer, countPets, createPet, expectBody, expectError, type RequestOptions } from "./call.ts";

const REX = { name: "Rex", categoryId: 7, status: "pending" };
const CHARACTERS = "Idempotency-Key must be 1 to 255 printable ASCII characters other than double quotes";
const ONCE = "Idempotency-Key must be sent only once (put a key that contains a comma in double quotes)";
const createUnder = (key: string, pet: unknown = REX, options: RequestOptions = {}): Promise<Answer> =>
  createPet(pet, { ...options, headers: { "Idempotency-Key": key } });

/** The id of the only animal. */
const onlyId = () => env.DB.prepare("SELECT id FROM pets").first("id");

describe("Idempotency-Key", () => {
  it("returns the same 201, body and Location to concurrent and later requests, and stores one animal", async () => {
    const concurrent = await Promise.all(Array.from({ length: 10 }, () => createUnder("key")));
    const id = await onlyId();
    for (const answer of [...concurrent, await createUnder("key")]) {
      expectBody(answer, 201, `{"id":${id},"name":"Rex","categoryId":7,"status":"pending"}`);
      expect(answer.headers.get("Location")).toBe(`/v1/pets/${id}`);
    }
    expect(await countPets()).toBe(1);
  });

  it.each([
    ["case of its name", '{"name":"rex","categoryId":9223372036854775807}'],
    ["end of its name", '{"name":"Rex\\u0000","categoryId":9223372036854775807}'],
    ["last digit", '{"name":"Rex","categoryId":9223372036854775806}'],
  ])("responds 422 to an animal with a different %s, and stores nothing", async (_, other) => {
    const same = '{"name":"Rex","categoryId":9223372036854775807}';
    const first = await createUnder("key", same);
    expectError(await createUnder("key", other), "idempotency_key_used");
    expect(await countPets()).toBe(1);
    expectBody(await createUnder("key", same), 201, first.text);
  });

  it("distinguishes keys, even by case only, and never matches requests without a key", async () => {
    const keys = ["key", "KEY", "k ey", "'key'"];
    for (const key of keys) expect((await createUnder(key)).status).toBe(201);
    for (let i = 0; i < 2; i++) expect((await createPet(REX)).status).toBe(201);
    expect(await countPets()).toBe(keys.length + 2);
  });

  it.each([
    ["x".repeat(255), `"${"x".repeat(255)}"`],
    ['"a, b"', '"a, b"'],
  ])("treats %s and %s as one key", async (bare, quoted) => {
    await createUnder(bare);
    expect((await createUnder(quoted)).status).toBe(201);
    expect(await countPets()).toBe(1);
  });

  it.each([
    ["", CHARACTERS],
    ['""', CHARACTERS],
    ["x".repeat(256), CHARACTERS],
    [`"${"x".repeat(255)},"`, CHARACTERS],
    ["a\tb", CHARACTERS],
    ["\u007f", CHARACTERS],
    ['a"', CHARACTERS],
    ['"a"b"', CHARACTERS],
    // Two headers arrive as one, joined by a comma.
    ["a,b", ONCE],
    ['"a", "b"', ONCE],
  ])("rejects the key %j", async (key, problem) => {
    expectError(await createUnder(key), "invalid_request", `${problem}.`);
    expect(await countPets()).toBe(0);
  });

  it("names a problem with the key together with one of the body", async () => {
    const problem = "The body is not valid JSON (it must be one JSON object)";
    expectError(await createUnder("\u007f", "{oops"), "invalid_request", `${CHARACTERS}; ${problem}.`);
  });

  it("is also checked by the table, and needs a caller (see grammars.test.ts)", async () => {
    const insert = env.DB.prepare(
      "INSERT INTO pets (name, category_id, status, created_by, idempotency_key) VALUES ('Rex', 1, 'sold', ?, ?)",
    );
    for (const key of ["", "x".repeat(256), "é", "a\tb"])
      await expect(insert.bind("API_KEY", key).run()).rejects.toThrow(/CHECK constraint failed/);
    await expect(insert.bind(null, "key").run()).rejects.toThrow(/CHECK constraint failed/);
  });
});

describe("the Idempotency-Keys of different callers", () => {
  const [OLD, NEW, OTHER] = ["the-old-key-of-the-shop", "the-new-key-of-the-shop", "the-key-of-the-zoo"];
  const bindings = { API_KEY_SHOP: OLD, API_KEY_SHOP__2: NEW, API_KEY_ZOO: OTHER };
  const createWith = (key: string, pet: object = REX, replaced: RequestOptions["bindings"] = {}) =>
    createUnder("1", pet, { authorization: `Bearer ${key}`, bindings: { ...bindings, ...replaced } });

  it("are different, also for the same animal; those of one caller are the same, whatever its API key", async () => {
    const [first, second] = [await createWith(OLD), await createWith(OTHER)];
    expect(JSON.parse(second.text).id).toBeGreaterThan(JSON.parse(first.text).id);
    expectBody(await createWith(NEW), 201, first.text);
    expectError(await createWith(NEW, { ...REX, name: "Ada" }), "idempotency_key_used");
    // After the old API key was deleted.
    expectBody(await createWith(NEW, REX, { API_KEY_SHOP: undefined }), 201, first.text);
    expectBody(await createWith(OTHER), 201, second.text);
    expect(await countPets()).toBe(2);
  });

  it("store one animal for each caller if their requests race", async () => {
    const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => createWith(i % 2 ? NEW : OTHER)));
    expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(201));
    expect(await countPets()).toBe(2);
  });
});

it.each([false, true])(
  "a create is tried again after a lost connection and a random time, and stored once (lost when it was stored: %j)",
  async (stored) => {
    const log = vi.spyOn(console, "error");
    const wait = vi.spyOn(scheduler, "wait").mockResolvedValue();
    vi.spyOn(Math, "random").mockReturnValue(0.9);
    let tries = 0;
    const DB = intercepted(async (execute) => {
      if (++tries > 2) return execute();
      if (stored) await execute();
      throw new Error("D1_ERROR: Network connection lost.");
    });
    const answer = await createUnder("key", REX, { bindings: { DB } });
    expectBody(answer, 201, `{"id":${await onlyId()},"name":"Rex","categoryId":7,"status":"pending"}`);
    expect(tries).toBe(3);
    expect(wait.mock.calls).toEqual([[90], [180]]);
    expect(await countPets()).toBe(1);
    expectBody(await createUnder("key"), 201, answer.text);
    expect(log).not.toHaveBeenCalled();
  },
);
