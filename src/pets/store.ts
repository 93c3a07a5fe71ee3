// How pets are kept: the only SQL about them, one statement and so one round trip for each function.

import { type Columns, insertSql, jsonOf, type StoredJson, valuesOf } from "../d1/columns.ts";
import { rowsOf } from "../d1/database.ts";
import { insertOnce, type Stored } from "../http/idempotency.ts";
import { startOf } from "../http/paging.ts";
import type { NewPet, Pet, PetQuery } from "./pet.ts";

/** All that is said of the columns of a pet: its JSON, its INSERT and the comparison under a key are made of these. */
export const PET_COLUMNS = {
  id: "id",
  name: "name",
  categoryId: "category_id",
  status: "status",
} satisfies Columns<Pet>;

const INSERT = insertSql("pets", PET_COLUMNS);

const SELECT = `SELECT ${jsonOf(PET_COLUMNS)} AS json FROM pets WHERE id = ?1`;

const SELECT_PAGE = `SELECT ${jsonOf(PET_COLUMNS)} AS json FROM pets WHERE id > ?1 ORDER BY id LIMIT ?2 + 1`;

// A statement of its own: `(?3 IS NULL OR status = ?3)` would keep SQLite from using the index.
const SELECT_PAGE_BY_STATUS = `SELECT ${jsonOf(PET_COLUMNS)} AS json FROM pets WHERE status = ?3 AND id > ?1 ORDER BY id LIMIT ?2 + 1`;

/** Stores a pet, at most one under each idempotency key. Under a key that has one, gives that one. */
export function insertPet(db: D1DatabaseSession, pet: NewPet, idempotencyKey: string | undefined): Promise<Stored> {
  return insertOnce(db.prepare(INSERT).bind(...valuesOf(PET_COLUMNS, pet, idempotencyKey)));
}

export async function selectPet(db: D1DatabaseSession, id: bigint): Promise<StoredJson | undefined> {
  const [row] = await rowsOf<{ json: StoredJson }>(db.prepare(SELECT).bind(String(id)));
  return row?.json;
}

/** The pets of a page, in ascending order of id, and one more if there is one. */
export async function selectPets(db: D1DatabaseSession, query: PetQuery): Promise<StoredJson[]> {
  const range = [startOf(query), query.limit];
  const statement = query.status
    ? db.prepare(SELECT_PAGE_BY_STATUS).bind(...range, query.status)
    : db.prepare(SELECT_PAGE).bind(...range);
  const rows = await rowsOf<{ json: StoredJson }>(statement);
  return rows.map(({ json }) => json);
}
