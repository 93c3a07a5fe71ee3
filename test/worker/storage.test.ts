import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { intercepted, type Query } from "./binding.ts";
import { call, createPet, PERFORM } from "./call.ts";

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

/** 3,000 animals in one statement: half of them available, the others pending. */
const FILL = `
  WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 3000)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'pet ' || id, id, iif(id % 2, 'pending', 'available') FROM ids`;

describe("listPets", () => {
  beforeEach(async () => {
    await env.DB.prepare(FILL).run();
  });

  const ALL = "SEARCH pets USING INTEGER PRIMARY KEY (rowid>?)";
  const BY_STATUS = "SEARCH pets USING INDEX pets_by_status (status=? AND rowid>?)";

  it.each([
    ["", 21, ALL],
    ["?limit=100&after=1500", 101, ALL],
    ["?after=2990", 10, ALL],
    ["?status=pending&limit=100&after=1500", 101, BY_STATUS],
  ])("%s is one round trip, reads at most limit + 1 rows, and sorts nothing", async (query, rowsRead, plan) => {
    const { DB, trips } = recorded();
    expect((await call(`/v1/pets${query}`, { bindings: { DB } })).status).toBe(200);
    expect(trips.map(({ meta }) => meta)).toMatchObject([{ rows_read: rowsRead, rows_written: 0 }]);
    expect(await Promise.all(trips.map(planOf))).toEqual([[plan]]);
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
  const plan = ["SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)"];
  expect(await Promise.all(trips.map(planOf))).toEqual([plan, plan]);
});

it.each(Object.entries(PERFORM))("%s is at most one round trip", async (_, perform) => {
  await createPet({ name: "Rex", categoryId: 1 });
  const { DB, trips } = recorded();
  await perform({ bindings: { DB } });
  expect(trips.length).toBeLessThanOrEqual(1);
});
