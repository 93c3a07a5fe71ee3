import { env } from "cloudflare:workers";
import { beforeEach, expect, it } from "vitest";
import { described } from "../conformance.ts";
import { intercepted } from "./binding.ts";
import { ADA, call, createPet, noteCorrections, REX } from "./call.ts";

/** A database that records what each round trip of the service costs. */
function recorded(): { DB: D1Database; trips: D1Meta[] } {
  const trips: D1Meta[] = [];
  const DB = intercepted(env.DB, async (execute) => {
    const result = await execute();
    trips.push((result as D1Result).meta);
    return result;
  });
  return { DB, trips };
}

/** 3,000 animals in one statement: half of them available, the others pending. */
const FILL = `
  WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 3000)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'pet ' || id, id, iif(id % 2, 'pending', 'available') FROM ids`;

beforeEach(async () => {
  await env.DB.prepare(FILL).run();
});

// Without an index, a statement would read more.
it.each([
  ["", 21],
  ["?limit=100&after=1500", 101],
  ["?status=pending&limit=100&after=1500", 101],
])("listPets%s is one round trip that reads at most limit + 1 rows", async (query, rowsRead) => {
  const { DB, trips } = recorded();
  expect((await call(`/v1/pets${query}`, { bindings: { DB } })).status).toBe(200);
  expect(trips).toMatchObject([{ rows_read: rowsRead, rows_written: 0 }]);
});

const FILTERS = described("listPets").parameters.filter(
  (p) => p.in === "query" && !["limit", "after"].includes(p.name),
);
/** Each filter alone, and with any of the others. */
const combinations: string[][] = [];
for (const { name } of FILTERS) combinations.push([name], ...combinations.map((others) => [...others, name]));

// In a store of animals that are alike, SQLite's statistics speak against the index.
it.each(combinations.map((names) => [names]))(
  "listPets by %j reads no animals that differ in one of them, whatever statistics SQLite has",
  async (names) => {
    await noteCorrections();
    await env.DB.exec("DELETE FROM pets");
    for (let i = 0; i < 50; i++) await createPet(REX);
    await env.DB.exec("ANALYZE");
    for (const different of names) {
      const { DB, trips } = recorded();
      const query = names.map((name) => `${name}=${(name === different ? ADA : REX)[name]}`).join("&");
      expect((await call(`/v1/pets?${query}`, { bindings: { DB } })).text).toBe("[]");
      expect(trips).toMatchObject([{ rows_read: 1 }]);
    }
  },
);

it("createPet is one round trip that writes 3 rows: the animal, its index entry, and the greatest id", async () => {
  const { DB, trips } = recorded();
  expect((await createPet({ name: "Rex", categoryId: 1 }, { bindings: { DB } })).status).toBe(201);
  expect(trips).toMatchObject([{ rows_read: 3, rows_written: 3 }]);
});

it("createPet with an Idempotency-Key is one round trip, even the second time", async () => {
  const { DB, trips } = recorded();
  const headers = { "Idempotency-Key": "key" };
  for (let i = 0; i < 2; i++) await createPet({ name: "Rex", categoryId: 1 }, { headers, bindings: { DB } });
  expect(trips.map(({ rows_written }) => rows_written)).toEqual([4, 2]);
});

it("getPet is one round trip that reads 1 row, found or not", async () => {
  const { DB, trips } = recorded();
  expect((await call("/v1/pets/1500", { bindings: { DB } })).status).toBe(200);
  expect((await call("/v1/pets/3001", { bindings: { DB } })).status).toBe(404);
  const cost = { rows_read: 1, rows_written: 0 };
  expect(trips).toMatchObject([cost, cost]);
});
