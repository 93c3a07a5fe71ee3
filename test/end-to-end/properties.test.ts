// Generated requests over HTTP: what no table of examples shows. Every response must be described too (send.ts), and no
// test here expects a 5xx. Other tests use the same store, so each property is about animals that were created for it.

import fc, { type Arbitrary } from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { PetStatus, type NewPet, type PetQuery } from "../../src/pets/pet.ts";
import { INT64 } from "../../src/values/int64.ts";
import { printJson } from "../../src/values/json.ts";
import type { Answer } from "../conformance.ts";
import { send } from "./send.ts";
import { IS_REMOVED, KEY, ORIGIN } from "./service.ts";

type Animal = Record<string, unknown> & { id: bigint };
type Values = { valid: Arbitrary<unknown>; invalid: Arbitrary<unknown> };

const CALLERS = 10;
const { minimum, maximum } = INT64;

const text = fc.string({ unit: "binary" });
const blank = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\u00a0", "\u3000") });
const otherType = fc.constantFrom(null, true, 1.5, [], {});
const int64 = fc.oneof(fc.bigInt(minimum, maximum), fc.constantFrom(minimum, maximum));
const beyond = fc.oneof(fc.bigInt({ max: minimum - 1n }), fc.bigInt({ min: maximum + 1n }));
const status = fc.constantFrom(...PetStatus.options);
const otherStatus = fc.oneof(text, blank, fc.constantFrom("Sold", "sold ", "available,sold"));

/** Values of each property that createPet accepts, and others. */
const PROPERTIES = {
  name: {
    valid: fc.oneof(
      text.filter((name) => /\S/.test(name)),
      fc.constant("😀".repeat(1000)),
    ),
    invalid: fc.oneof(blank, otherType, fc.constantFrom("😀".repeat(1001), 7n)),
  },
  categoryId: { valid: int64, invalid: fc.oneof(beyond, otherType, text) },
  status: { valid: status, invalid: fc.oneof(otherStatus, otherType, fc.constant(7n)) },
} satisfies Record<keyof NewPet, Values>;
const valid = fc.record(mapped(PROPERTIES, "valid"), { requiredKeys: ["name", "categoryId"] });

/** The same for the parameters of listPets. */
const number = /^(0|-?[1-9]\d*)$/;
const notNumber = fc
  .oneof(text, blank, fc.constantFrom("01", "1x", "+1", "1.0"))
  .filter((value) => !number.test(value));
const PARAMETERS = {
  limit: {
    valid: fc.integer({ min: 1, max: 100 }),
    invalid: fc.oneof(notNumber, fc.integer({ max: 0 }), fc.integer({ min: 101 })),
  },
  status: { valid: status, invalid: otherStatus },
  after: { valid: int64, invalid: fc.oneof(notNumber, beyond) },
} satisfies Record<keyof PetQuery, Values>;

function mapped(values: Record<string, Values>, kind: keyof Values): Record<string, Arbitrary<unknown>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value[kind]]));
}

const list = (search: Record<string, unknown>) =>
  send(`${ORIGIN}/v1/pets?${new URLSearchParams(search as Record<string, string>)}`, { headers: KEY });

function create(animal: object, headers: Record<string, string> = {}): Promise<Answer> {
  const type = { "Content-Type": "application/json" };
  return send(`${ORIGIN}/v1/pets`, {
    method: "POST",
    headers: { ...KEY, ...type, ...headers },
    body: printJson(animal),
  });
}

/** Parses JSON exactly: integers become bigints. */
const parse = <T = Animal>(json: string) =>
  JSON.parse(json, (_key, value, { source }) => (Number.isInteger(value) ? BigInt(source) : value)) as T;

const messageOf = ({ text }: Answer): string => JSON.parse(text).message;

/** Checks `holds` with `runs` generated inputs, several at a time, or with fewer on a machine that is busy. */
async function always<T>(runs: number, inputs: Arbitrary<T>, holds: (input: T) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(inputs, holds);
  const options = { numRuns: runs / CALLERS, interruptAfterTimeLimit: 50_000 };
  await Promise.all(Array.from({ length: CALLERS }, () => fc.assert(property, options)));
}

let animals: Animal[] = [];

beforeAll(async () => {
  const answers = await Promise.all(fc.sample(valid, 20).map((animal) => create(animal)));
  animals = answers.map(({ text }) => parse(text));
});

it("createPet stores every valid animal exactly, and its Location leads to it", () =>
  always(300, valid, async (animal) => {
    const { status, headers, text } = await create(animal);
    expect(status).toBe(201);
    expect(parse(text)).toEqual({ id: expect.anything(), status: "available", ...animal });
    const location = new URL(String(headers.get("Location")), ORIGIN);
    const found = IS_REMOVED ? { status: 410 } : { status: 200, text };
    expect(await send(location.href, { headers: KEY })).toMatchObject(found);
  }));

it("createPet rejects a body in which a property is missing or invalid, and names it", () => {
  const oneInvalid = Object.entries(mapped(PROPERTIES, "invalid")).map(([name, invalid]) =>
    fc.tuple(fc.constant(name), name === "status" ? invalid : fc.option(invalid, { nil: undefined })),
  );
  return always(300, fc.tuple(valid, fc.oneof(...oneInvalid)), async ([animal, [name, value]]) => {
    const answer = await create({ ...animal, [name]: value });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toMatch(RegExp(`^${name} (is required and )?must be `));
  });
});

it("listPets accepts every valid query, and returns the animals that match and no others", () => {
  // Random values hardly ever match an animal, so some come from one.
  const after = fc.oneof(
    int64,
    fc.nat({ max: 19 }).map((i) => (animals[i]?.id ?? 1n) - 1n),
  );
  const query = fc.record({ ...mapped(PARAMETERS, "valid"), after }, { requiredKeys: [] });
  return always(300, query, async (values) => {
    const answer = await list(values);
    expect(answer.status).toBe(200);
    const listed = parse<Animal[]>(answer.text);
    const { limit = 20, after, status } = values as { limit?: number; after?: bigint; status?: string };
    const isMatch = (animal: Animal) =>
      (after === undefined || animal.id > after) && (status === undefined || animal["status"] === status);
    expect(listed.length).toBeLessThanOrEqual(limit);
    expect(listed.filter((animal) => !isMatch(animal))).toEqual([]);
    const last = listed.length < limit ? undefined : listed.at(-1);
    const expected = animals.filter((animal) => isMatch(animal) && (last === undefined || animal.id <= last.id));
    expect(listed).toEqual(expect.arrayContaining(expected));
  });
});

it("listPets rejects a query with an invalid parameter, and names it", () => {
  const oneInvalid = Object.entries(mapped(PARAMETERS, "invalid")).map(([name, invalid]) =>
    fc.tuple(fc.constant(name), invalid),
  );
  const query = fc.record(mapped(PARAMETERS, "valid"), { requiredKeys: [] });
  return always(300, fc.tuple(query, fc.oneof(...oneInvalid)), async ([values, [name, value]]) => {
    const answer = await list({ ...values, [name]: value });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain(`${name} must be `);
  });
});

it("createPet accepts every valid Idempotency-Key, and creates only once under it", () => {
  // HTTP removes white space at both ends of a header.
  const keys = fc.stringMatching(/^(?:"[!#-~]{1,255}"|[!#-+\--~]{1,255})$/);
  return always(100, fc.tuple(keys, valid), async ([key, animal]) => {
    const headers = { "Idempotency-Key": key };
    const first = await create(animal, headers);
    expect([201, 422]).toContain(first.status); // 422 if the key was generated before
    expect(await create(animal, headers)).toMatchObject({ status: first.status, text: first.text });
  });
});
