// How pets are kept: the only SQL of the service, one statement and so one round trip for each function. SQLite itself
// prints a pet as JSON, because D1 hands every integer over as a JavaScript number, rounded beyond 2^53; for the same
// reason int64 goes in as a decimal string, which an INTEGER column stores exactly.

import type { NewPet, PetQuery } from "./pet.ts";

/** A pet as it is stored, as JSON text. It begins with the id. */
export type StoredPet = string;

const JSON_OF_PET = "json_object('id', pets.id, 'name', name, 'categoryId', category_id, 'status', status)";

// Where the key has its animal already, that one is returned, by an update that changes nothing: DO NOTHING returns no row.
const INSERT = `INSERT INTO pets (name, category_id, status, idempotency_key) VALUES (?1, ?2, ?3, ?4)
  ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO UPDATE SET name = name
  RETURNING ${JSON_OF_PET} AS pet, name = ?1 AND category_id = ?2 AND status = ?3 AS asSent`;

const SELECT = `SELECT ${JSON_OF_PET} AS pet FROM pets WHERE pets.id = ?1`;

const SELECT_PAGE = `SELECT ${JSON_OF_PET} AS pet FROM pets WHERE pets.id > ?1 ORDER BY pets.id LIMIT ?2`;

// A statement of its own: `(?3 IS NULL OR status = ?3)` would keep SQLite from using the index.
const SELECT_PAGE_BY_STATUS = `SELECT ${JSON_OF_PET} AS pet FROM pets WHERE status = ?3 AND pets.id > ?1 ORDER BY pets.id LIMIT ?2`;

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
): Promise<{ pet: StoredPet; asSent: boolean }> {
  const statement = db.prepare(INSERT).bind(name, String(categoryId), status, idempotencyKey ?? null);
  const { results } = await statement.run<{ pet: StoredPet; asSent: 0 | 1 }>();
  // An INSERT that stores nothing throws.
  const [{ pet, asSent }] = results as [{ pet: StoredPet; asSent: 0 | 1 }];
  return { pet, asSent: asSent === 1 };
}

export async function selectPet(db: D1DatabaseSession, id: bigint): Promise<StoredPet | undefined> {
  const { results } = await db.prepare(SELECT).bind(String(id)).run<{ pet: StoredPet }>();
  return results[0]?.pet;
}

/** At most `limit` pets, in ascending order of id. */
export async function selectPets(db: D1DatabaseSession, { after, limit, status }: PetQuery): Promise<StoredPet[]> {
  const range = [after === undefined ? BEFORE_ALL : String(after), limit];
  const statement = status
    ? db.prepare(SELECT_PAGE_BY_STATUS).bind(...range, status)
    : db.prepare(SELECT_PAGE).bind(...range);
  const { results } = await statement.run<{ pet: StoredPet }>();
  return results.map(({ pet }) => pet);
}

/** The id of a stored pet, in decimal digits: read from its text, since one more column costs a fifth of a page. */
export function idOf(pet: StoredPet): string {
  return pet.slice('{"id":'.length, pet.indexOf(","));
}
