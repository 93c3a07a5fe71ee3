import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { TABLES } from "../../scripts/backup/tables.ts";
import { nameOf } from "../../src/d1/columns.ts";
import { operations } from "../conformance.ts";
import { intercepted, type Query } from "./binding.ts";
import { call, createPet, insertPet, OPERATIONS, requestTo } from "./service.ts";

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

/** 3,000 animals in one statement: 1,500 available, 1,498 pending, 2 sold at either end. */
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

it("createPet with an Idempotency-Key is one round trip too, the second time as well", async () => {
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
  const { DB, trips } = recorded();
  await perform({ bindings: { DB } });
  expect(trips.length).toBeLessThanOrEqual(1);
});

it.each(["/v1/pets?limit=0", "/v1/pets/x", "/v1/nothing"])("a refusal, %s, costs no round trip", async (path) => {
  const { DB, trips } = recorded();
  await call(path, { bindings: { DB } });
  expect(trips).toEqual([]);
});

describe("the table", () => {
  const WHITE_SPACE =
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";

  it.each<[what: string, pet: { name?: string; categoryId?: string; status?: string }]>([
    ["a name of no characters", { name: "" }],
    ["a name of all white space", { name: WHITE_SPACE }],
    ...[...WHITE_SPACE].map((name) => [`the name ${JSON.stringify(name)}`, { name }] satisfies [string, object]),
    ["an unknown status", { status: "gone" }],
    ["a status in another case", { status: "Sold" }],
    ["a categoryId that is no integer", { categoryId: "1.5" }],
    ["a categoryId beyond int64", { categoryId: "9223372036854775808" }],
    ["a categoryId that is no number", { categoryId: "x" }],
  ])("refuses %s, as the schema does", async (_, pet) => {
    await expect(insertPet("1", pet)).rejects.toThrow(/constraint failed|cannot store/);
  });

  it.each(["name", "category_id", "status"])("refuses a %s of null", async (column) => {
    await insertPet("1");
    await expect(env.DB.exec(`UPDATE pets SET ${column} = NULL`)).rejects.toThrow(/NOT NULL constraint failed/);
  });

  it.each(["\u0000", "\u0085", "\u180e", "\u200b", "\u2060", "x", "🐶"])(
    "takes the name %j, as the schema does",
    async (name) => {
      await insertPet("1", { name });
      expect((await createPet({ name, categoryId: 1 })).status).toBe(201);
    },
  );
});

// No number, which an integer's column would take as one.
const CANDIDATES = ["", " ", "x", "0000-99-99", "\u2003"];

describe.each(TABLES)("the table $name", ({ name, columns, row }) => {
  const refusals = Object.entries(columns).flatMap(([property, column]) =>
    CANDIDATES.filter((value) => !z.safeParse(row.shape[property] ?? z.never(), value).success).map(
      (value) => [nameOf(column), value] as const,
    ),
  );

  it.each(refusals)("refuses a %s of %j, as the schema does", async (column, value) => {
    const creation = operations.find(({ path, responses }) => path === `/${name}` && responses[201]);
    if (!creation) return expect.fail(`nothing adds ${name}`);
    await call(...requestTo(creation));
    const update = env.DB.prepare(`UPDATE ${name} SET ${column} = ?`).bind(value);
    await expect(update.run()).rejects.toThrow(/constraint failed|cannot store|datatype mismatch/);
  });
});
