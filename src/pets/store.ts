// How pets are kept: the only SQL of the service, one statement and so one round trip for each function. SQLite itself
// prints a pet as JSON, because D1 hands every integer over as a JavaScript number, rounded beyond 2^53; for the same
// reason int64 goes in as a decimal string, which an INTEGER column stores exactly.

import type { NewPet, PetQuery } from "./pet.ts";

/** A pet as it is stored: its id in decimal digits, and the whole of it as JSON text. */
export interface StoredPet {
  id: string;
  json: string;
}

const STORED_PET = `CAST(pets.id AS TEXT) AS id,
  json_object('id', pets.id, 'name', name, 'categoryId', category_id, 'status', status) AS json`;

// Where the key has its animal already, that one is returned, by an update that changes nothing: DO NOTHING returns no row.
const INSERT = `INSERT INTO pets (name, category_id, status, idempotency_key) VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO UPDATE SET name = name
  RETURNING ${STORED_PET}, name = ?1 AND category_id = ?2 AND status = ?3 AS asSent`;

const SELECT = `SELECT ${STORED_PET} FROM pets WHERE pets.id = ?1`;

// `pets.id`, not `id`: the alias is text, and sorting by it would sort the whole table, 10 before 2.
const SELECT_PAGE = `SELECT ${STORED_PET} FROM pets WHERE pets.id > ?1 ORDER BY pets.id LIMIT ?2`;

// A statement of its own: `(?3 IS NULL OR status = ?3)` would keep SQLite from using the index.
const SELECT_PAGE_BY_STATUS = `SELECT ${STORED_PET} FROM pets WHERE status = ?3 AND pets.id > ?1 ORDER BY pets.id LIMIT ?2`;

// Less than every int64.
const BEFORE_ALL = "-1e19";

/**
 * Stores a pet, at most one under each idempotency key. Under a key that has one, gives that one; `asSent` tells whether
 * it is the pet that was sent.
 */
export async function insertPet(
  db: D1DatabaseSession,
  { name, categoryId, status }: NewPet,
  idempotencyKey: string | undefined,
): Promise<StoredPet & { asSent: boolean }> {
  const { results } = await db
    .prepare(INSERT)
    .bind(name, String(categoryId), status, idempotencyKey ?? null)
    .run<StoredPet & { asSent: 0 | 1 }>();
  // An INSERT that stores nothing throws.
  const [pet] = results as [StoredPet & { asSent: 0 | 1 }];
  return { ...pet, asSent: pet.asSent === 1 };
}

export async function selectPet(db: D1DatabaseSession, id: bigint): Promise<StoredPet | undefined> {
  const { results } = await db.prepare(SELECT).bind(String(id)).run<StoredPet>();
  return results[0];
}

/** At most `limit` pets, in ascending order of id. */
export async function selectPets(db: D1DatabaseSession, { after, limit, status }: PetQuery): Promise<StoredPet[]> {
  const range = [after === undefined ? BEFORE_ALL : String(after), limit];
  const statement = status
    ? db.prepare(SELECT_PAGE_BY_STATUS).bind(...range, status)
    : db.prepare(SELECT_PAGE).bind(...range);
  return (await statement.run<StoredPet>()).results;
}
