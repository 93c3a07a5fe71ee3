import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { TABLES } from "../../scripts/backup/tables.ts";
import { nameOf } from "../../src/d1/columns.ts";
import { operations } from "../conformance.ts";
import { intercepted, type Query } from "./binding.ts";
import { call, createPet, OPERATIONS, requestTo } from "./service.ts";

type Trip = Query & { meta: D1Meta };

/** A database that records every round trip of the service. */
function recorded(): { DB: D1Database; trips: Trip[] } {
  const trips: Trip[] = [];
  const DB = intercepted(env.DB, async (query, execute) => {
    const result = await execute();
    trips.push({ ...query, meta: (result as D1Result).meta });
    return result;
  });
  return { DB, trips };
}

async function planOf({ sql, parameters }: Trip): Promise<string[]> {
  const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .bind(...parameters)
    .run();
  return results.map(({ detail }) => String(detail));
}

/** 3,000 animals in one statement: 1,500 available, 1,498 pending, and one sold at each end. */
const FILL = `
  WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 3000)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'pet ' || id, id, CASE WHEN id IN (1, 3000) THEN 'sold' WHEN id % 2 THEN 'pending' ELSE 'available' END FROM ids`;

describe("listPets", () => {
  beforeEach(async () => {
    await env.DB.prepare(FILL).run();
  });

  const ALL = "SEARCH pets USING INTEGER PRIMARY KEY (rowid>?)";
  const BY_STATUS = "SEARCH pets USING INDEX pets_by_status (status=? AND rowid>?)";

  it.each([
    ["", 21, ALL],
    ["?limit=1", 2, ALL],
    ["?limit=100", 101, ALL],
    ["?limit=100&after=1500", 101, ALL],
    ["?after=2990", 10, ALL],
    ["?after=-1", 21, ALL],
    ["?after=3000", 1, ALL],
    ["?status=available", 21, BY_STATUS],
    ["?status=pending&limit=100&after=1500", 101, BY_STATUS],
    ["?status=sold&limit=100", 2, BY_STATUS],
    ["?status=sold&after=1", 1, BY_STATUS],
  ])("%s is one round trip, reads at most limit + 1 rows, and sorts nothing", async (query, rowsRead, plan) => {
    const { DB, trips } = recorded();
    expect((await call(`/v1/pets${query}`, { bindings: { DB } })).status).toBe(200);
    expect(trips.length).toBe(1);
    for (const trip of trips) {
      expect(trip.meta).toMatchObject({ rows_read: rowsRead, rows_written: 0 });
      expect(await planOf(trip)).toEqual([plan]);
    }
  });
});

it("createPet is one round trip that writes 2 rows, the animal and its index entry", async () => {
  await env.DB.prepare(FILL).run();
  const { DB, trips } = recorded();
  expect((await createPet({ name: "Rex", categoryId: 1 }, { bindings: { DB } })).status).toBe(201);
  expect(trips.map(({ meta }) => meta)).toMatchObject([{ rows_read: 2, rows_written: 2 }]);
});

it("createPet with an Idempotency-Key is one round trip, even the second time", async () => {
  await env.DB.prepare(FILL).run();
  const { DB, trips } = recorded();
  const headers = { "Idempotency-Key": "key" };
  for (let i = 0; i < 2; i++) await createPet({ name: "Rex", categoryId: 1 }, { headers, bindings: { DB } });
  expect(trips.map(({ meta }) => meta.rows_written)).toEqual([3, 1]);
});

it("getPet is one round trip that reads 1 row, found or not", async () => {
  await env.DB.prepare(FILL).run();
  const { DB, trips } = recorded();
  expect((await call("/v1/pets/1500", { bindings: { DB } })).status).toBe(200);
  expect((await call("/v1/pets/3001", { bindings: { DB } })).status).toBe(404);
  expect(trips.map(({ meta }) => meta)).toMatchObject([
    { rows_read: 1, rows_written: 0 },
    { rows_read: 1, rows_written: 0 },
  ]);
  for (const trip of trips) expect(await planOf(trip)).toEqual(["SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)"]);
});

it.each(Object.entries(OPERATIONS))("%s is at most one round trip", async (_, perform) => {
  await createPet({ name: "Rex", categoryId: 1 });
  const { DB, trips } = recorded();
  await perform({ bindings: { DB } });
  expect(trips.length).toBeLessThanOrEqual(1);
});

it.each(["/v1/pets?limit=0", "/v1/pets/x", "/v1/nothing"])("%s is rejected without a round trip", async (path) => {
  const { DB, trips } = recorded();
  await call(path, { bindings: { DB } });
  expect(trips).toEqual([]);
});

// All white space and line terminators of ECMA-262, sections 12.2 and 12.3.
const WHITE_SPACE =
  "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";

// Strings that a schema may accept or reject, and some that almost match a format. None of them is a number, because a column
// of integers would convert it.
const CANDIDATES = [
  "",
  "x",
  "🐶",
  "\u0000",
  "\u0085",
  "\u180e",
  "\u200b",
  "\u2060",
  "é",
  "a\tb",
  WHITE_SPACE,
  ...WHITE_SPACE,
  "x".repeat(255),
  "x".repeat(256),
  "available",
  "Available",
  "available ",
  "gone",
  "2021-02-28",
  "2021-02-30",
  "2021-13-01",
  "2021-2-1",
  "2021-02-28T00:00:00Z",
  " 2021-02-28",
  "0000-99-99",
  "now",
  "a@b.example",
  "https://store.example/",
];

describe.each(TABLES)("the table $name", ({ name, columns, row }) => {
  const properties = Object.entries(columns);
  const creation = operations.find(({ path, responses }) => path === `/${name}` && responses[201]);

  /** Why the table rejects a value of a column; empty if it accepts the value. */
  async function problemOf(column: string, value: string): Promise<string> {
    const update = env.DB.prepare(`UPDATE ${name} SET ${column} = ?`).bind(value);
    return update.run().then(() => "", String);
  }

  it("is STRICT, its columns are INTEGER or TEXT, and those of required properties are NOT NULL", async () => {
    expect(await env.DB.prepare("SELECT strict FROM pragma_table_list(?)").bind(name).first("strict")).toBe(1);
    const { results } = await env.DB.prepare('SELECT name, type, "notnull" OR pk AS required FROM pragma_table_info(?)')
      .bind(name)
      .all<{ name: string; type: string; required: 0 | 1 }>();
    expect(results.filter(({ type }) => !["INTEGER", "TEXT"].includes(type))).toEqual([]);
    const required = properties.filter(([, column]) => typeof column === "string").map(([, column]) => nameOf(column));
    expect(results.flatMap((column) => (column.required ? [column.name] : [])).sort()).toEqual(required.sort());
  });

  it.each(properties)("accepts and rejects the same values of %s as the schema", async (property, column) => {
    if (!creation) return expect.fail(`no operation adds to ${name}`);
    await call(...requestTo(creation));
    const schema = row.shape[property] ?? z.never();
    // The values of an enumeration, also behind a default.
    const values = [...(schema._zod.values ?? [])].map(String);
    for (const value of [...CANDIDATES, ...values]) {
      const problem = await problemOf(nameOf(column), value);
      const isValid = z.safeParse(schema, value).success;
      const what = `${name}.${nameOf(column)} = ${JSON.stringify(value)}, which the schema ${isValid ? "accepts" : "rejects"}`;
      if (isValid) expect(problem, what).toBe("");
      else expect(problem, what).toMatch(/constraint failed|cannot store|mismatch/);
    }
  });
});

describe.each(operations)("$operationId", (operation) => {
  it("does not change or remove rows other than its own", async () => {
    const others = () =>
      env.DB.batch(TABLES.map(({ name }) => env.DB.prepare(`SELECT * FROM ${name} WHERE id IN (0, 2, 3)`)));
    for (const creation of operations.filter(({ responses }) => responses[201])) {
      for (let i = 0; i < 4; i++) await call(...requestTo(creation));
    }
    await env.DB.batch(TABLES.map(({ name }) => env.DB.prepare(`UPDATE ${name} SET id = 0 WHERE id = 4`)));
    const before = (await others()).map(({ results }) => results);
    expect(before.flat().length).toBe(3 * TABLES.length);
    await call(...requestTo(operation));
    expect((await others()).map(({ results }) => results)).toEqual(before);
  });
});
