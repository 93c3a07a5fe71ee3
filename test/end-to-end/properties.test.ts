// Requests generated from the description, over HTTP: every operation accepts what its description allows and rejects what it
// forbids. Every response must be described too (send.ts), and no test here expects a 5xx. Other tests use the same store, so
// each property is about animals that were created for it.

import type { Schema } from "@cfworker/json-schema";
import fc, { type Arbitrary } from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { printJson } from "../../src/values/json.ts";
import { type Answer, type DescribedOperation, described, describedOperations } from "../conformance.ts";
import { brokenObject, invalidText, only, text, validObject, validText } from "./generators.ts";
import { send } from "./send.ts";
import { API_KEY, IS_DEPLOYED, IS_REMOVED, KEY, ORIGIN, UNTIL_REMOVAL } from "./service.ts";

type Pet = Record<string, unknown> & { id: bigint };

const JSON_TYPE = "application/json";
const CALLERS = 10;
const UNUSED_ID = "0";

const listPets = described("listPets");
const createPet = described("createPet");
const getPet = described("getPet");
const query = listPets.parameters.filter((parameter) => parameter.in === "query");
const newPet = createPet.requestBody?.content[JSON_TYPE].schema ?? false;
const petId = schemaOf(getPet, "petId");
const idempotencyKey = schemaOf(createPet, "Idempotency-Key");

function schemaOf({ operationId, parameters }: DescribedOperation, name: string): Schema {
  const parameter = parameters.find((parameter) => parameter.name === name);
  if (!parameter) throw new Error(`${operationId} has no parameter ${name}.`);
  return parameter.schema;
}

interface Parts {
  id?: string;
  search?: URLSearchParams;
  headers?: Record<string, string>;
  body?: string | undefined;
}

/** Calls the operation with the key. Whatever `parts` omits is valid, but no animal has the id. */
function call({ method, path, requestBody }: DescribedOperation, parts: Parts = {}): Promise<Answer> {
  const {
    id = UNUSED_ID,
    search = "",
    headers,
    body = JSON.stringify(requestBody?.content[JSON_TYPE].example),
  } = parts;
  const type = body === undefined ? {} : { "Content-Type": JSON_TYPE };
  const url = new URL(`${ORIGIN}/v1${path.replace(/\{\w+\}/, encodeURIComponent(id))}`);
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

it.skipIf(IS_REMOVED)(`getPet returns every animal, and 404 for an id that no animal has${UNTIL_REMOVAL}`, () => {
  const unused = only(validText(petId), "unused", (id) => BigInt(id) < 1n || BigInt(id) > 2n ** 32n);
  return always(200, fc.oneof(fc.constantFrom(...pets.map(({ id }) => String(id))), unused), async (id) => {
    const pet = pets.find((pet) => String(pet.id) === id);
    const { status, text } = await call(getPet, { id });
    expect(status).toBe(pet ? 200 : 404);
    if (pet) expect(parse(text)).toEqual(pet);
  });
});

it.skipIf(IS_REMOVED)(`getPet returns 404 if the identifier is not valid${UNTIL_REMOVAL}`, () => {
  const wrong = only(invalidText(petId), "a segment", (value) => !["", ".", ".."].includes(value));
  return always(200, wrong, async (id) => {
    expect((await call(getPet, { id })).status).toBe(404);
  });
});

it("listPets rejects a query with an invalid parameter", () => {
  const wrong = query.map(({ name, schema }) => fc.tuple(fc.constant(name), invalidText(schema)));
  return always(300, fc.tuple(someOf(validText), fc.oneof(...wrong)), async ([values, [name, value]]) => {
    const answer = await call(listPets, { search: new URLSearchParams({ ...values, [name]: value }) });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain(`${name} must be `);
  });
});

it("listPets rejects an unknown parameter", () => {
  const unknown = only(text, "an unknown name", (name) => !query.some((known) => known.name === name));
  return always(200, fc.tuple(someOf(validText), unknown, text), async ([values, name, value]) => {
    const search = new URLSearchParams(values);
    search.append(name, value);
    const answer = await call(listPets, { search });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain("unknown query parameter");
  });
});

it("listPets rejects a repeated parameter", () =>
  always(100, fc.tuple(someOf(validText), fc.constantFrom(...query), text), async ([values, { name }, value]) => {
    const search = new URLSearchParams({ ...values, [name]: value });
    search.append(name, value);
    const answer = await call(listPets, { search });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain(`${name} must be given only once`);
  }));

it("createPet rejects a body in which a property is missing or invalid", () =>
  always(300, brokenObject(newPet), async (pet) => {
    const answer = await call(createPet, { body: printJson(pet) });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toMatch(RegExp(`^(${Object.keys(pet).join("|")}) (is required and )?must be `));
  }));

it("createPet rejects JSON that is not an object, and text that is not JSON", () => {
  const other = only(fc.json(), "not an object", (json) => !json.startsWith("{"));
  return always(200, fc.oneof(other, text), async (body) => {
    expect((await call(createPet, { body })).status).toBe(400);
  });
});

it("createPet rejects every other media type", () => {
  const token = fc.string({ unit: fc.constantFrom(..."abcdejnosx.+-"), minLength: 1 });
  const types = fc.tuple(token, token).map((parts) => parts.join("/"));
  const others = only(types, "a different type", (type) => !type.endsWith("+json") && type !== JSON_TYPE);
  return always(100, others, async (type) => {
    expect((await call(createPet, { headers: { "Content-Type": type } })).status).toBe(415);
  });
});

// HTTP removes white space at both ends of a header.
const trimmed = (values: Arbitrary<string>) => only(values, "trimmed", (value) => value.trim() === value);
const headerText = (from: number, to: number) =>
  trimmed(
    fc.string({ unit: fc.integer({ min: from, max: to }).map((code) => String.fromCharCode(code)), maxLength: 300 }),
  );
const anyHeader = fc.oneof(headerText(0x20, 0x7e), headerText(0xa1, 0xff));

it("createPet accepts every valid Idempotency-Key, and creates only once under it", () =>
  always(100, fc.tuple(trimmed(validText(idempotencyKey)), validObject(newPet)), async ([key, pet]) => {
    const creation = { headers: { "Idempotency-Key": key }, body: printJson(pet) };
    const first = await call(createPet, creation);
    expect([201, 422]).toContain(first.status); // 422 if the key was generated before
    expect(await call(createPet, creation)).toMatchObject({ status: first.status, text: first.text });
  }));

it("createPet rejects every other Idempotency-Key", () => {
  const pattern = RegExp(String(idempotencyKey.pattern));
  const wrong = only(fc.oneof(anyHeader, fc.constant("a,b")), "not a key", (value) => !pattern.test(value));
  return always(100, wrong, async (value) => {
    expect((await call(createPet, { headers: { "Idempotency-Key": value } })).status).toBe(400);
  });
});

it.each(describedOperations)("$operationId accepts every x-d1-bookmark", (operation) =>
  always(100, anyHeader, async (value) => {
    const { status } = await call(operation, { headers: { "x-d1-bookmark": value } });
    expect([200, 201, 404, 410]).toContain(status); // 404 because no animal has the unused id, 410 once getPet is removed
  }),
);

it("every path rejects requests without a valid key", () => {
  const unknown = ["", "/nothing"].map((path) => ({ ...getPet, path }));
  const credentials = headerText(0x20, 0x7e).chain((token) =>
    fc.constantFrom(token, `Bearer ${token}`, `Basic ${token}`),
  );
  const wrong = only(trimmed(credentials), "wrong", (value) => value.split(/ +/)[1] !== API_KEY);
  const requests = fc.tuple(fc.constantFrom(...describedOperations, ...unknown), wrong);
  return always(200, requests, async ([operation, Authorization]) => {
    expect((await call(operation, { headers: { Authorization } })).status).toBe(401);
  });
});

// The methods that the runtime supports. It rejects all others itself, and Cloudflare may reject the unusual ones before.
const UNUSUAL = ["TRACE", "COPY", "LOCK", "MKCOL", "MOVE", "PROPFIND", "PURGE"];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", ...(IS_DEPLOYED ? [] : UNUSUAL)];

it.each([listPets, getPet])("$path responds to every other method with 405 and Allow", ({ path, responses }) => {
  const allow = String(responses["405"]?.headers["Allow"]?.schema.const);
  const others = METHODS.filter((method) => !allow.split(", ").includes(method));
  return always(100, fc.constantFrom(...others), async (method) => {
    const { status, headers } = await call({ ...getPet, method, path });
    expect(status).toBe(405);
    expect(headers.get("Allow")).toBe(allow);
  });
});
