// The service's SQL about animals. Each function runs one statement, which costs one round trip for each try. An int64
// is bound as a decimal string, which an INTEGER column stores exactly.

import { runStatement } from "../d1/database.ts";
import { INT64 } from "../values/int64.ts";
import type { NewPet } from "./pet.ts";
import type { PetQuery } from "./pet-query.ts";

/** The JSON of a row. SQLite builds it, because D1 returns integers as JavaScript numbers, rounded beyond 2^53. */
export const PET_JSON = "json_object('id', id, 'name', name, 'categoryId', category_id, 'status', status)";

/** The id in the JSON of a row, which starts with it. (A column of its own would make a page slower by an eighth.) */
export function idIn(json: string): string {
  const [, id] = /^\{"id":(-?\d+)[,}]/.exec(json) ?? [];
  if (id === undefined) throw new Error("D1 returned a row without an id.");
  return id;
}

/** The JSON that a statement selects as `json`. Throws if D1 returned a row without it. */
function jsonIn(row: Record<string, unknown> | undefined): string {
  const json = row?.["json"];
  if (typeof json !== "string" || !json.startsWith('{"id":')) throw new Error("D1 returned a row without its JSON.");
  return json;
}

// The id is the Unix time in milliseconds or, if the store has that id or a greater one, the next after the greatest.
// So ids increase, and none is given twice, even if an operator brings back an earlier state: the clock has gone on.
//
// A key that already has a row keeps that row: on conflict, an update that changes nothing, because DO NOTHING would
// return no row. `matches` tells whether the stored row has the values that were sent. `IS` compares an INTEGER column
// with a text as integers, exactly: that is column affinity.
const INSERT = `
  INSERT INTO pets (id, created_by, idempotency_key, name, category_id, status)
  VALUES (
    max(CAST(unixepoch('subsec') * 1000 AS INTEGER), (SELECT coalesce(max(id), 0) + 1 FROM pets)),
    ?1, ?2, ?3, ?4, ?5
  )
  ON CONFLICT (created_by, idempotency_key) WHERE idempotency_key IS NOT NULL DO UPDATE SET name = name
  RETURNING ${PET_JSON} AS json, name IS ?3 AND category_id IS ?4 AND status IS ?5 AS matches`;

// With a plain parameter as LIMIT, SQLite would prepare the statement anew for each value, which costs a get a quarter.
const SELECT_PAGE = `SELECT ${PET_JSON} AS json FROM pets WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3 + 1`;

// Each combination of filters is a statement of its own, because `(?4 IS NULL OR status = ?4)` would keep SQLite from
// using the index. It names the index, because SQLite's statistics can speak against it: after `PRAGMA optimize` while
// all animals have one status, it would read the whole table for any other.
const SELECT_PAGE_BY_STATUS = `
  SELECT ${PET_JSON} AS json FROM pets INDEXED BY pets_by_status
  WHERE id BETWEEN ?1 AND ?2 AND status = ?4 ORDER BY id LIMIT ?3 + 1`;

/**
 * Stores an animal, at most one for each idempotency key of a caller. If `matches` is false, the key belongs to a
 * different animal. Without a key, a StoreFailure says whether the animal may have been stored.
 */
export async function insertPet(
  db: D1DatabaseSession,
  { name, categoryId, status }: NewPet,
  { caller, idempotencyKey }: { caller: string; idempotencyKey: string | undefined },
) {
  const values = [caller, idempotencyKey ?? null, name, String(categoryId), status];
  const statement = db.prepare(INSERT).bind(...values);
  const read = ([row]: Record<string, unknown>[]) => {
    const [json, matches] = [jsonIn(row), row?.["matches"]];
    if (matches !== 0 && matches !== 1) throw new Error("D1 did not compare the stored row of an INSERT.");
    return { id: idIn(json), json, matches: matches === 1 };
  };
  return runStatement(statement, read, idempotencyKey === undefined ? "write" : "idempotent write");
}

/** The animals of a page, in ascending order of id, and one more if there is a next page. */
export async function selectPets(db: D1DatabaseSession, { limit, status, id, after }: PetQuery): Promise<string[]> {
  const next = after === undefined ? INT64.minimum : after + 1n;
  const first = id !== undefined && id > next ? id : next;
  // At most one animal has an id, so there is no next page to look for.
  const values = [String(first), String(id ?? INT64.maximum), id === undefined ? limit : 0];
  const statement =
    status === undefined
      ? db.prepare(SELECT_PAGE).bind(...values)
      : db.prepare(SELECT_PAGE_BY_STATUS).bind(...values, status);
  return runStatement(statement, (rows) => rows.map(jsonIn));
}
