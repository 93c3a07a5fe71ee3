// Requests generated from the published description, over HTTP: what it allows is accepted, what it forbids is refused,
// and every answer is described. A fault of the service would show as a 5xx, which no test here expects.

import { readFileSync } from "node:fs";
import fc, { type Arbitrary } from "fast-check";
import { afterAll, expect, inject, it } from "vitest";
import { KEY } from "./dev-server.ts";
import { type Sent, send } from "./send.ts";

interface Schema {
  $ref?: string;
  type?: string;
  enum?: string[];
  minimum?: bigint;
  maximum?: bigint;
  pattern?: string;
  properties?: Record<string, Schema>;
  required?: string[];
}
interface Operation {
  parameters: { name: string; in: "query" | "path" | "header"; schema: Schema }[];
  requestBody: { content: { "application/json": { schema: Schema } } };
  responses: Record<string, { headers: Record<string, { schema: { const: string } }> }>;
}
interface Description {
  paths: Record<"/pets" | "/pets/{petId}", Record<"get" | "post", Operation>>;
  components: { schemas: Record<string, Schema> };
}

// With its integers as bigints, because the bounds of an int64 are no numbers.
const { paths, components } = JSON.parse(readFileSync("dist/site/openapi.json", "utf8"), (_key, value, { source }) =>
  Number.isInteger(value) ? BigInt(source) : value,
) as Description;

const listPets = paths["/pets"].get;
const createPet = paths["/pets"].post;
const getPet = paths["/pets/{petId}"].get;

const NEW_PET = resolved(createPet.requestBody.content["application/json"].schema);
const PARAMETERS = listPets.parameters
  .filter((parameter) => parameter.in === "query")
  .map(({ name, schema }) => ({ name, schema: resolved(schema) }));
const PET_ID = resolved(getPet.parameters[0]?.schema ?? {});

function resolved(schema: Schema): Schema {
  return { ...schema, ...(schema.$ref && components.schemas[schema.$ref.replace(/^.*\//, "")]) };
}

const text = fc.string({ unit: "binary" });
const integer = ({ minimum = 0n, maximum = 0n }: Schema) =>
  fc.oneof(fc.bigInt({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum));
const beyond = ({ minimum = 0n, maximum = 0n }: Schema) =>
  fc.oneof(
    fc.bigInt({ max: minimum - 1n }),
    fc.bigInt({ min: maximum + 1n }),
    fc.constantFrom(minimum - 1n, maximum + 1n),
  );

/** JSON texts that the schema allows. */
function valid(schema: Schema): Arbitrary<string> {
  const { type, enum: values, pattern = "", properties = {}, required = [] } = resolved(schema);
  if (values) return fc.constantFrom(...values).map((value) => JSON.stringify(value));
  if (type === "integer") return integer(schema).map(String);
  if (type === "string")
    return text.filter((value) => RegExp(pattern).test(value)).map((value) => JSON.stringify(value));
  const members = fc.record(mapValues(properties, valid), { requiredKeys: required });
  return members.map(objectText);
}

/** JSON texts that the schema forbids, if it is not of an object. */
function invalid(schema: Schema): Arbitrary<string> {
  const { type, enum: values = [], pattern = "" } = resolved(schema);
  const others = ["null", "true", "false", "[]", "{}", "1.5", "-0.001", "1e-7"];
  if (type === "integer") {
    return fc.oneof(
      fc.constantFrom(...others),
      text.map((value) => JSON.stringify(value)),
      beyond(schema).map(String),
    );
  }
  const refused = (value: string) => (values.length > 0 ? !values.includes(value) : !RegExp(pattern).test(value));
  const blank = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\u00a0", "\u3000") });
  const wrong = fc.oneof(text, blank).filter(refused);
  return fc.oneof(
    fc.constantFrom(...others, "0"),
    wrong.map((value) => JSON.stringify(value)),
  );
}

/** JSON texts of objects in which at least one property is missing or forbidden. */
function invalidObject({ properties = {}, required = [] }: Schema): Arbitrary<string> {
  const broken = fc.subarray(Object.keys(properties), { minLength: 1 });
  return broken.chain((names) => {
    const member = (name: string, schema: Schema) => {
      if (!names.includes(name)) return valid(schema);
      return required.includes(name) ? fc.option(invalid(schema), { nil: undefined }) : invalid(schema);
    };
    return fc.record(mapValues(properties, (schema, name) => member(name, schema))).map(objectText);
  });
}

function objectText(members: Record<string, string | undefined>): string {
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  return `{${present.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

function mapValues<T, U>(object: Record<string, T>, map: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));
}

/** What a query may say for a parameter, and what it may not. */
const validValue = (schema: Schema) => valid(schema).map((value) => value.replace(/^"(.*)"$/, "$1"));
const invalidValue = (schema: Schema) =>
  schema.enum
    ? text.filter((value) => !schema.enum?.includes(value))
    : fc.oneof(
        text.filter((value) => !/^-?\d+$/.test(value)),
        beyond(schema).map(String),
      );

const validQuery = fc.record(
  mapValues(Object.fromEntries(PARAMETERS.map(({ name, schema }) => [name, schema])), validValue),
  {
    requiredKeys: [],
  },
);

const searchOf = (query: Record<string, string | undefined>) =>
  new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));

let requests = 0;
const REQUESTS = 2_000;

/** Sends one request to a path under /v1, with the key unless the headers say otherwise. */
function ask(path: string, { headers, ...sent }: Sent = {}) {
  requests++;
  return send(`${inject("origin")}/v1${path}`, { ...sent, headers: { ...KEY, ...headers } });
}

const post = (body: string, type = "application/json") =>
  ask("/pets", { method: "POST", headers: { "Content-Type": type }, body });

/** Checks `holds` with `runs` generated inputs. */
const always = <T>(runs: number, inputs: Arbitrary<T>, holds: (input: T) => Promise<void>) =>
  fc.assert(fc.asyncProperty(inputs, holds), { numRuns: runs });

it("listPets accepts every valid query", () =>
  always(300, validQuery, async (query) => {
    const { status, text } = await ask(`/pets?${searchOf(query)}`);
    expect(status).toBe(200);
    const pets: { status: string }[] = JSON.parse(text);
    expect(pets.length).toBeLessThanOrEqual(Number(query["limit"] ?? 20));
    if (query["status"]) expect(pets.every((pet) => pet.status === query["status"])).toBe(true);
  }));

it("listPets refuses a query in which one parameter is invalid", () =>
  always(
    300,
    fc.tuple(
      validQuery,
      fc.constantFrom(...PARAMETERS).chain(({ name, schema }) => fc.tuple(fc.constant(name), invalidValue(schema))),
    ),
    async ([query, [name, value]]) => {
      const { status, text } = await ask(`/pets?${searchOf({ ...query, [name]: value })}`);
      expect(status).toBe(400);
      expect(JSON.parse(text).message).toContain(`${name} must be `);
    },
  ));

it("listPets refuses an unknown parameter", () => {
  const unknown = text.filter((name) => !PARAMETERS.some((parameter) => parameter.name === name));
  return always(200, fc.tuple(validQuery, unknown, text), async ([query, name, value]) => {
    const search = searchOf(query);
    search.append(name, value);
    const { status, text } = await ask(`/pets?${search}`);
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toContain("unknown query parameter");
  });
});

it("listPets refuses a repeated parameter", () =>
  always(100, fc.tuple(validQuery, fc.constantFrom(...PARAMETERS), text), async ([query, { name }, value]) => {
    const search = searchOf({ ...query, [name]: value });
    search.append(name, value);
    const { status, text } = await ask(`/pets?${search}`);
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toContain(`${name} must be given only once`);
  }));

it("createPet accepts every NewPet, and keeps it", () =>
  always(300, valid(NEW_PET), async (body) => {
    const { status, headers, text } = await post(body);
    expect(status).toBe(201);
    expect(JSON.parse(text)).toMatchObject(JSON.parse(body));
    const kept = await ask(String(headers.get("Location")).replace("/v1", ""));
    expect(kept).toMatchObject({ status: 200, text });
  }));

it("createPet refuses what is no NewPet", () =>
  always(300, invalidObject(NEW_PET), async (body) => {
    const { status, text } = await post(body);
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toMatch(/^(name|categoryId|status) /);
  }));

it("createPet refuses every other JSON, and what is no JSON", () =>
  always(
    200,
    fc.oneof(
      fc.json().filter((json) => !json.startsWith("{")),
      text,
    ),
    async (body) => {
      expect((await post(body)).status).toBe(400);
    },
  ));

it("createPet refuses every other media type", () => {
  const token = fc.string({ unit: fc.constantFrom(..."abcdejnosx.+-"), minLength: 1 });
  const types = fc.tuple(token, token).map(([type, subtype]) => `${type}/${subtype}`);
  const others = types.filter((type) => !/.\+json$/.test(type) && type !== "application/json");
  return always(100, others, async (type) => {
    expect((await post('{"name":"Rex","categoryId":1}', type)).status).toBe(415);
  });
});

it("getPet finds an animal or none for every identifier", () =>
  always(200, integer(PET_ID), async (id) => {
    expect([200, 404]).toContain((await ask(`/pets/${id}`)).status);
  }));

it("getPet finds none for what is no identifier", () => {
  const segment = text.filter((value) => value !== "" && value !== "." && value !== ".." && !/^-?\d+$/.test(value));
  return always(200, fc.oneof(segment, beyond(PET_ID).map(String)), async (value) => {
    expect((await ask(`/pets/${encodeURIComponent(value)}`)).status).toBe(404);
  });
});

it("every other method is 405 with Allow as described", () => {
  const paths_ = Object.entries(paths).map(([path, operations]) => {
    const allow = Object.values(operations)[0]?.responses["405"]?.headers["Allow"]?.schema.const ?? "";
    return { path: path.replace("{petId}", "1"), allow };
  });
  // Those that the runtime knows; it refuses all others itself.
  const methods = fc.constantFrom(
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "TRACE",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPFIND",
    "PURGE",
  );
  return always(100, fc.tuple(fc.constantFrom(...paths_), methods), async ([{ path, allow }, method]) => {
    fc.pre(!allow.split(", ").includes(method));
    const { status, headers } = await ask(path, { method });
    expect(status).toBe(405);
    expect(headers.get("Allow")).toBe(allow);
  });
});

/** Header values that the parameter allows, as HTTP carries them: without white space at either end. */
function headerValue({ parameters }: Operation, name: string): Arbitrary<string> {
  const { pattern = "" } = parameters.find((parameter) => parameter.name === name)?.schema ?? {};
  return fc.stringMatching(RegExp(pattern)).filter((value) => value.trim() === value);
}

const printable = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });

it("createPet accepts every Idempotency-Key, and adds one animal under it", () =>
  always(100, fc.tuple(headerValue(createPet, "Idempotency-Key"), valid(NEW_PET)), async ([key, body]) => {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
    const first = await ask("/pets", { method: "POST", headers, body });
    expect([201, 422]).toContain(first.status); // 422 where the key was generated before
    const again = await ask("/pets", { method: "POST", headers, body });
    expect(again).toMatchObject({ status: first.status, text: first.text });
  }));

it("every operation accepts every x-d1-bookmark, and refuses what is none", () => {
  const bookmark = headerValue(listPets, "x-d1-bookmark");
  const other = printable.filter((value) => !/^[0-9a-f-]{59}$/.test(value));
  const paths_ = fc.constantFrom("/pets", "/pets/1");
  return always(100, fc.tuple(paths_, bookmark, other), async ([path, good, bad]) => {
    expect([200, 404]).toContain((await ask(path, { headers: { "x-d1-bookmark": good } })).status);
    expect((await ask(path, { headers: { "x-d1-bookmark": bad } })).status).toBe(400);
  });
});

it("nobody is admitted without the key", () => {
  const paths_ = fc.constantFrom("/pets", "/pets/1", "/pets?limit=x", "/nothing", "");
  const methods = fc.constantFrom("GET", "HEAD", "POST", "PUT", "DELETE");
  const credentials = fc.oneof(
    printable,
    printable.map((token) => `Bearer ${token}`),
    printable.map((token) => `Basic ${token}`),
  );
  const wrong = credentials.filter((value) => !/^bearer +local-key *$/i.test(value));
  return always(200, fc.tuple(paths_, methods, wrong), async ([path, method, Authorization]) => {
    expect((await ask(path, { method, headers: { Authorization } })).status).toBe(401);
  });
});

afterAll(() => {
  console.log(`${requests} generated requests`);
  expect(requests).toBeGreaterThanOrEqual(REQUESTS);
});
