// Generated requests over HTTP: what no table of examples shows. Every response must be described too (send.ts), and no
// test here expects a 5xx. Other tests use the same store, so each property is about animals that were created for it.

import fc, { type Arbitrary } from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { type NewPet, PetStatus } from "../../src/pets/pet.ts";
import type { PetQuery } from "../../src/pets/pet-query.ts";
import { INT64 } from "../../src/values/int64.ts";
import { printJson } from "../../src/values/json.ts";
import type { Answer } from "../conformance.ts";
import { send } from "./send.ts";
import { IS_REMOVED, KEY, ORIGIN } from "./service.ts";

type Animal = Record<string, unknown> & { id: bigint };

const { minimum, maximum } = INT64;

const int64 = fc.oneof(fc.bigInt(minimum, maximum), fc.constantFrom(minimum, maximum));
const status = fc.constantFrom(...PetStatus.options);
/** Values that createPet accepts. */
const PROPERTIES = {
  name: fc.oneof(
    fc.string({ unit: "binary" }).filter((name) => /\S/.test(name)),
    fc.constant("😀".repeat(1000)),
  ),
  categoryId: int64,
  status,
} satisfies Record<keyof NewPet, Arbitrary<unknown>>;
const valid = fc.record(PROPERTIES, { requiredKeys: ["name", "categoryId"] });

function create(animal: object, headers: Record<string, string> = {}): Promise<Answer> {
  const all = { ...KEY, "Content-Type": "application/json", ...headers };
  return send(`${ORIGIN}/v1/pets`, { method: "POST", headers: all, body: printJson(animal) });
}

/** Parses JSON exactly: integers become bigints. */
const parse = <T = Animal>(json: string) =>
  JSON.parse(json, (_key, value, { source }) => (Number.isInteger(value) ? BigInt(source) : value)) as T;

/** Checks `holds` with 100 generated inputs, several at a time, or with fewer on a machine that is busy. */
async function always<T>(inputs: Arbitrary<T>, holds: (input: T) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(inputs, holds);
  const options = { numRuns: 10, interruptAfterTimeLimit: 50_000 };
  await Promise.all(Array.from({ length: 10 }, () => fc.assert(property, options)));
}

let animals: Animal[] = [];

beforeAll(async () => {
  const answers = await Promise.all(fc.sample(valid, 20).map((animal) => create(animal)));
  animals = answers.map(({ text }) => parse(text));
});

it("createPet stores every valid animal exactly, once under a key, and its Location leads to it", () => {
  const keys = fc.stringMatching(/^[!#-+\--~]{1,200}$/);
  return always(fc.tuple(valid, keys), async ([animal, key]) => {
    // No other test or run has used it.
    const unused = { "Idempotency-Key": key + crypto.randomUUID() };
    const { status, headers, text } = await create(animal, unused);
    expect(status).toBe(201);
    expect(parse(text)).toEqual({ id: expect.anything(), status: "available", ...animal });
    expect(await create(animal, unused)).toMatchObject({ status, text });
    const location = new URL(String(headers.get("Location")), ORIGIN);
    const found = IS_REMOVED ? { status: 410 } : { status: 200, text };
    expect(await send(location.href, { headers: KEY })).toMatchObject(found);
  });
});

it("listPets accepts every valid query, and returns the animals that match and no others", () => {
  // Random values hardly ever match an animal, so some come from one.
  const after = fc.oneof(
    int64,
    fc.nat({ max: 19 }).map((i) => (animals[i]?.id ?? 1n) - 1n),
  );
  const limit = fc.integer({ min: 1, max: 100 });
  const parameters = { limit, status, after } satisfies Record<keyof PetQuery, Arbitrary<unknown>>;
  return always(fc.record(parameters, { requiredKeys: [] }), async (query) => {
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    const answer = await send(`${ORIGIN}/v1/pets?${search}`, { headers: KEY });
    expect(answer.status).toBe(200);
    const listed = parse<Animal[]>(answer.text);
    const { limit = 20, after, ...filters } = query;
    const isMatch = (animal: Animal) =>
      (after === undefined || animal.id > after) &&
      Object.entries(filters).every(([name, value]) => animal[name] === value);
    expect(listed.length).toBeLessThanOrEqual(limit);
    expect(listed.filter((animal) => !isMatch(animal))).toEqual([]);
    const last = listed.length < limit ? undefined : listed.at(-1);
    const expected = animals.filter((animal) => isMatch(animal) && (last === undefined || animal.id <= last.id));
    expect(listed).toEqual(expect.arrayContaining(expected));
  });
});
