// Requests generated from the description, over HTTP: what no table of examples shows. Every response must be described
// too (send.ts), and no test here expects a 5xx. Other tests use the same store, so each property is about animals that
// were created for it.

import type { Schema } from "@cfworker/json-schema";
import fc, { type Arbitrary } from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { printJson } from "../../src/values/json.ts";
import { type Answer, type DescribedOperation, described } from "../conformance.ts";
import { brokenObject, invalidText, validObject, validText } from "./generators.ts";
import { send } from "./send.ts";
import { IS_REMOVED, KEY, ORIGIN } from "./service.ts";

type Pet = Record<string, unknown> & { id: bigint };

const JSON_TYPE = "application/json";
const CALLERS = 10;

const listPets = described("listPets");
const createPet = described("createPet");
const query = listPets.parameters.filter((parameter) => parameter.in === "query");
const newPet = createPet.requestBody?.content[JSON_TYPE].schema ?? false;

interface Parts {
  search?: URLSearchParams;
  headers?: Record<string, string>;
  body?: string;
}

/** Calls the operation with the key. Whatever `parts` omits is valid. */
function call({ method, path, requestBody }: DescribedOperation, parts: Parts): Promise<Answer> {
  const { search = "", headers, body = JSON.stringify(requestBody?.content[JSON_TYPE].example) } = parts;
  const type = body === undefined ? {} : { "Content-Type": JSON_TYPE };
  const url = new URL(`${ORIGIN}/v1${path.replace(/\{\w+\}/, "1")}`);
  url.search = String(search);
  return send(url.href, { method, headers: { ...KEY, ...type, ...headers }, ...(body !== undefined && { body }) });
}

/** Parses JSON exactly: integers become bigints. */
const parse = <T = Pet>(json: string) =>
  JSON.parse(json, (_key, value, { source }) => (Number.isInteger(value) ? BigInt(source) : value)) as T;

/** Checks `holds` with `runs` generated inputs, several at a time. A property that takes too long fails. */
async function always<T>(runs: number, inputs: Arbitrary<T>, holds: (input: T) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(inputs, holds);
  const options = { numRuns: runs / CALLERS, interruptAfterTimeLimit: 50_000, markInterruptAsFailure: true };
  await Promise.all(Array.from({ length: CALLERS }, () => fc.assert(property, options)));
}

/** Some of the query parameters, each with a text that `textOf` generates for it. */
const someOf = (textOf: (schema: Schema, name: string) => Arbitrary<string>) =>
  fc
    .subarray(query)
    .chain((some) => fc.record(Object.fromEntries(some.map(({ name, schema }) => [name, textOf(schema, name)]))));

const messageOf = ({ text }: Answer): string => JSON.parse(text).message;

let pets: Pet[] = [];

beforeAll(async () => {
  const creations = fc.sample(validObject(newPet), 20).map((pet) => call(createPet, { body: printJson(pet) }));
  pets = (await Promise.all(creations)).map(({ text }) => parse(text));
});

it("createPet stores every valid animal exactly, and its Location leads to it", () =>
  always(300, validObject(newPet), async (pet) => {
    const { status, headers, text } = await call(createPet, { body: printJson(pet) });
    expect(status).toBe(201);
    expect(parse(text)).toEqual({ id: expect.anything(), status: "available", ...pet });
    const location = new URL(String(headers.get("Location")), ORIGIN);
    const found = IS_REMOVED ? { status: 410 } : { status: 200, text };
    expect(await send(location.href, { headers: KEY })).toMatchObject(found);
  }));

it("listPets accepts every valid query, and returns the animals that match and no others", () => {
  // Random values hardly ever match an animal, so half of them come from one.
  const valuesOf = (schema: Schema, name: string) => {
    const matching = pets.flatMap(({ id, ...pet }) => ({ ...pet, after: id - 1n })[name] ?? []).map(String);
    return matching.length > 0 ? fc.oneof(fc.constantFrom(...matching), validText(schema)) : validText(schema);
  };
  return always(300, someOf(valuesOf), async (values) => {
    const answer = await call(listPets, { search: new URLSearchParams(values) });
    expect(answer.status).toBe(200);
    const listed = parse<Pet[]>(answer.text);
    const { limit = "20", after, ...filters } = values;
    const isMatch = (pet: Pet) =>
      (after === undefined || pet.id > BigInt(after)) &&
      Object.entries(filters).every(([name, value]) => String(pet[name]) === value);
    expect(listed.length).toBeLessThanOrEqual(Number(limit));
    expect(listed.filter((pet) => !isMatch(pet))).toEqual([]);
    const last = listed.length < Number(limit) ? undefined : listed.at(-1);
    const expected = pets.filter((pet) => isMatch(pet) && (last === undefined || pet.id <= last.id));
    expect(listed).toEqual(expect.arrayContaining(expected));
  });
});

it("listPets rejects a query with an invalid parameter, and names it", () => {
  const wrong = query.map(({ name, schema }) => fc.tuple(fc.constant(name), invalidText(schema)));
  return always(300, fc.tuple(someOf(validText), fc.oneof(...wrong)), async ([values, [name, value]]) => {
    const answer = await call(listPets, { search: new URLSearchParams({ ...values, [name]: value }) });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain(`${name} must be `);
  });
});

it("createPet rejects a body in which a property is missing or invalid, and names it", () =>
  always(300, brokenObject(newPet), async (pet) => {
    const answer = await call(createPet, { body: printJson(pet) });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toMatch(RegExp(`^(${Object.keys(pet).join("|")}) (is required and )?must be `));
  }));

it("createPet accepts every valid Idempotency-Key, and creates only once under it", () => {
  const { schema = false } = createPet.parameters.find(({ name }) => name === "Idempotency-Key") ?? {};
  // HTTP removes white space at both ends of a header.
  const keys = validText(schema).filter((key) => key.trim() === key);
  return always(100, fc.tuple(keys, validObject(newPet)), async ([key, pet]) => {
    const creation = { headers: { "Idempotency-Key": key }, body: printJson(pet) };
    const first = await call(createPet, creation);
    expect([201, 422]).toContain(first.status); // 422 if the key was generated before
    expect(await call(createPet, creation)).toMatchObject({ status: first.status, text: first.text });
  });
});
