// The only SQL about pets. Each function runs one statement, and so costs one round trip.

import { type Columns, firstId, insertSql, type JsonRow, jsonIn, jsonOf, valuesOf } from "../d1/columns.ts";
import { query, retry } from "../d1/database.ts";
import type { NewPet, Pet, PetQuery } from "./pet.ts";

/** The columns of a pet. Its JSON, its INSERT and the comparison under an Idempotency-Key are derived from them. */
export const PET_COLUMNS = {
  id: "id",
  name: "name",
  categoryId: "category_id",
  status: "status",
} satisfies Columns<Pet>;

const INSERT = insertSql("pets", PET_COLUMNS);

const SELECT = `SELECT ${jsonOf(PET_COLUMNS)} AS json FROM pets WHERE id = ?1`;

const SELECT_PAGE = `SELECT ${jsonOf(PET_COLUMNS)} AS json FROM pets WHERE id >= ?1 ORDER BY id LIMIT ?2 + 1`;

// A separate statement: `(?3 IS NULL OR status = ?3)` would keep SQLite from using the index.
const SELECT_PAGE_BY_STATUS = `SELECT ${jsonOf(PET_COLUMNS)} AS json FROM pets WHERE status = ?3 AND id >= ?1 ORDER BY id LIMIT ?2 + 1`;

/** Stores a pet, at most one for each idempotency key. Retries only with a key, because only then is it safe. */
export async function insertPet(
  db: D1DatabaseSession,
  pet: NewPet,
  idempotencyKey: string | undefined,
): Promise<{ stored: string; matches: boolean }> {
  const statement = db.prepare(INSERT).bind(...valuesOf(PET_COLUMNS, pet, idempotencyKey));
  const insert = () => query<JsonRow & { matches: 0 | 1 }>(statement);
  const [row] = await (idempotencyKey === undefined ? insert() : retry(insert));
  if (row?.matches !== 0 && row?.matches !== 1) throw new Error("D1 did not return the stored row of an INSERT.");
  return { stored: jsonIn(row), matches: row.matches === 1 };
}

export async function selectPet(db: D1DatabaseSession, id: bigint): Promise<string | undefined> {
  const rows = await query<JsonRow>(db.prepare(SELECT).bind(String(id)));
  return rows.length === 0 ? undefined : jsonIn(rows[0]);
}

/** The pets of a page, in ascending order of id, and one more if there is a next page. */
export async function selectPets(db: D1DatabaseSession, { after, limit, status }: PetQuery): Promise<string[]> {
  const statement = status
    ? db.prepare(SELECT_PAGE_BY_STATUS).bind(firstId(after), limit, status)
    : db.prepare(SELECT_PAGE).bind(firstId(after), limit);
  const rows = await query<JsonRow>(statement);
  return rows.map(jsonIn);
}
