// Optional properties: stored as null, left out of the JSON, and compared under a key.

import { env } from "cloudflare:workers";
import { beforeEach, expect, it } from "vitest";
import { type Columns, insertSql, valuesOf } from "../../src/d1/columns.ts";

interface NewThing {
  label: string;
  size?: bigint;
}

const COLUMNS = { id: "id", size: { optional: "size" }, label: "label" } satisfies Columns<NewThing & { id: bigint }>;

beforeEach(async () => {
  await env.DB.exec(
    "CREATE TABLE things (id INTEGER PRIMARY KEY, size INTEGER, label TEXT, idempotency_key TEXT) STRICT",
  );
  await env.DB.exec("CREATE UNIQUE INDEX thing_keys ON things (idempotency_key) WHERE idempotency_key IS NOT NULL");
});

async function insert(thing: NewThing, key?: string): Promise<unknown> {
  const statement = env.DB.prepare(insertSql("things", COLUMNS));
  return statement.bind(...valuesOf<NewThing>(COLUMNS, thing, key)).first();
}

it("prints an optional property last, and leaves it out if it is absent", async () => {
  const json = '{"id":1,"label":"a","size":9007199254740993}';
  expect(await insert({ label: "a", size: 9007199254740993n })).toEqual({ json, matches: 1 });
  expect(await insert({ label: "b" })).toEqual({ json: '{"id":2,"label":"b"}', matches: 1 });
});

it("compares an optional property under a key, even if it is absent", async () => {
  await insert({ label: "a" }, "absent");
  await insert({ label: "a", size: 1n }, "present");
  expect(await insert({ label: "a" }, "absent")).toMatchObject({ matches: 1 });
  expect(await insert({ label: "a", size: 1n }, "absent")).toMatchObject({ matches: 0 });
  expect(await insert({ label: "a" }, "present")).toMatchObject({ matches: 0 });
  expect(await insert({ label: "a", size: 2n }, "present")).toMatchObject({ matches: 0 });
});
