// Generated requests over HTTP: what no table of examples shows. Other tests use the same store, so each property is
// about animals that were created for it.

import fc, { type Arbitrary } from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { type NewPet, PetStatus } from "../../src/pets/pet.ts";
import type { PetQuery } from "../../src/pets/pet-query.ts";
import type { Pet } from "../../src/site/client.ts";
import { INT64 } from "../../src/values/int64.ts";
import { send } from "./send.ts";
import { KEY, ORIGIN, store } from "./service.ts";

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

/** Checks `holds` with 100 generated inputs, several at a time, or with fewer on a machine that is busy. */
async function always<T>(inputs: Arbitrary<T>, holds: (input: T) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(inputs, holds);
  const options = { numRuns: 10, interruptAfterTimeLimit: 50_000 };
  await Promise.all(Array.from({ length: 10 }, () => fc.assert(property, options)));
}

let animals: Pet[] = [];

beforeAll(async () => {
  animals = await Promise.all(fc.sample(valid, 20).map((animal) => store.createPet(animal)));
});

it("createPet stores every valid animal exactly, once under a key", () => {
  const keys = fc.stringMatching(/^[ !#-~]{1,200}$/);
  return always(fc.tuple(valid, keys), async ([animal, key]) => {
    const idempotencyKey = key + crypto.randomUUID(); // No other test or run has used it.
    const stored = await store.createPet(animal, { idempotencyKey });
    expect(stored).toEqual({ id: expect.anything(), status: "available", ...animal });
    expect(await store.createPet(animal, { idempotencyKey })).toEqual(stored);
    expect(await store.getPet(stored.id)).toEqual(stored);
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
    const exact = (_: string, value: unknown, { source }: { source: string }) =>
      Number.isInteger(value) ? BigInt(source) : value;
    const listed = JSON.parse(answer.text, exact) as Pet[];
    const { limit = 20, after, ...filters } = query;
    const isMatch = (animal: Pet) =>
      (after === undefined || animal.id > after) &&
      Object.entries(filters).every(([name, value]) => animal[name as keyof Pet] === value);
    expect(listed.length).toBeLessThanOrEqual(limit);
    expect(listed.filter((animal) => !isMatch(animal))).toEqual([]);
    const last = listed.length < limit ? undefined : listed.at(-1);
    const expected = animals.filter((animal) => isMatch(animal) && (last === undefined || animal.id <= last.id));
    expect(listed).toEqual(expect.arrayContaining(expected));
  });
});
