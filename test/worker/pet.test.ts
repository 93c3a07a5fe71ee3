// Rules for every property of a pet: it is stored, returned, compared under an Idempotency-Key, and checked by the
// table as by the schema.

import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { NewPet } from "../../src/pets/pet.ts";
import { componentOf } from "../conformance.ts";
import { ADA, type Answer, call, createPet, noteCorrections, REX, WHITE_SPACE } from "./call.ts";

const requiredOf = (component: string) => componentOf({ $ref: `#/components/schemas/${component}` }).required ?? [];
const names = Object.keys(REX);
const optional = names.filter((name) => !requiredOf("NewPet").includes(name));

const add = (pet: object): Promise<Answer> => createPet(pet, { headers: { "Idempotency-Key": "key" } });

it.each([REX, ADA])("stores and returns every property of %j", async (pet) => {
  const { status, text } = await add(pet);
  expect(status).toBe(201);
  const { id, ...properties } = JSON.parse(text);
  expect(properties).toEqual(pet);
  expect((await call(`/v1/pets/${id}`)).text).toBe(text);
  expect((await call("/v1/pets")).text).toBe(`[${text}]`);
  expect(await add(pet)).toMatchObject({ status: 201, text });
});

describe.each(names)("%s", (name) => {
  it.each([[[]], ["\ud800"]])("must not be %j: it has its type, in well-formed Unicode", async (value) => {
    const { status, text } = await add({ ...REX, [name]: value });
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toMatch(RegExp(`^${name} must be `));
  });

  it("is compared under a key", async () => {
    await add(REX);
    expect((await add({ ...REX, [name]: ADA[name] })).status).toBe(422);
  });
});

it.each(optional)("%s can be omitted, and is compared under a key nevertheless", async (name) => {
  const { [name]: _, ...others } = ADA;
  const { status, text } = await add(others);
  expect(status).toBe(201);
  expect(Object.values(JSON.parse(text))).not.toContain(null);
  expect(await add(others)).toMatchObject({ status, text });
  expect((await add(ADA)).status).toBe(422);
});

// Strings that a schema may accept or reject, and some that almost match a format. None of them is a number, because a
// column of integers would convert it.
const CANDIDATES = [
  ...["", "x", "🐶", "\u0000", "\u0085", "\u180e", "\u200b", "\u2060", "é", "a\tb", WHITE_SPACE, ...WHITE_SPACE],
  ...["Available", "available ", "gone", ...(componentOf({ $ref: "#/components/schemas/PetStatus" }).enum ?? [])],
  ...["2021-02-28", "2021-02-30", "2021-13-01", "2021-2-1", "2021-02-28T00:00:00Z", " 2021-02-28", "0000-99-99", "now"],
  ...["a@b.example", "https://store.example/"],
  ...["x".repeat(1000), "x".repeat(1001), "😀".repeat(1000), "😀".repeat(1001)],
  // The table counts characters up to U+0000, and bytes after it.
  ...["\u0000".padEnd(1000, "x"), "\u0000".padEnd(4001, "x")],
];

describe("the table", () => {
  const schemas: Record<string, z.ZodMiniType> = NewPet.shape;

  it("is STRICT, with INTEGER and TEXT columns that are NOT NULL if the property is required", async () => {
    expect(await env.DB.prepare("SELECT strict FROM pragma_table_list('pets')").first("strict")).toBe(1);
    const { results } = await env.DB.prepare("SELECT * FROM pragma_table_info('pets')").all();
    expect(results.filter(({ type }) => type !== "INTEGER" && type !== "TEXT")).toEqual([]);
    const mandatory = results.filter((column) => column["notnull"] || column["pk"]).map((column) => column["name"]);
    expect(mandatory.sort()).toEqual(requiredOf("Pet").map(columnOf).sort());
  });

  it("rejects an id below 1, or more than an hour ahead of the clock, however it is inserted", async () => {
    const insert = (id: string, or = "", on = "") =>
      env.DB.exec(
        `INSERT ${or} INTO pets (id, name, category_id, status) SELECT ${id}, 'Rex', 1, 'sold' WHERE true ${on}`,
      );
    const latest = "(unixepoch() + 3600) * 1000";
    await expect(insert("0")).rejects.toThrow("CHECK constraint failed: id > 0");
    for (const how of [[], ["OR IGNORE"], ["OR REPLACE"], ["", "ON CONFLICT DO NOTHING"]])
      await expect(insert(`${latest} + 1`, ...how)).rejects.toThrow("this one is ahead of the clock");
    await insert(latest);
  });

  it.each(names)("accepts and rejects the same values of %s as the schema", async (name) => {
    await add(REX);
    await noteCorrections();
    for (const value of CANDIDATES) {
      const update = env.DB.prepare(`UPDATE pets SET ${columnOf(name)} = ?`).bind(value);
      const problem = await update.run().then(() => "", String);
      const isValid = z.safeParse(schemas[name] ?? z.never(), value).success;
      const what = `${name} = ${JSON.stringify(value)}, which the schema ${isValid ? "accepts" : "rejects"}`;
      if (isValid) expect(problem, what).toBe("");
      else expect(problem, what).toMatch(/constraint failed|cannot store|mismatch/);
    }
  });
});

/** The column of a property: `category_id` for `categoryId`. */
const columnOf = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
