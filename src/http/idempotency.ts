// The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): a creation that is sent again under its key is
// answered again and not repeated. The key is stored in the row of what it created, so it never expires, and one
// statement both tries the key and stores the row.

import * as z from "zod/mini";
import type { StoredJson } from "../d1/columns.ts";
import { bookmarkOf, retryTransient, rowsOf } from "../d1/database.ts";
import { ApiError } from "./errors.ts";

export const IDEMPOTENCY_HEADER = "Idempotency-Key";

// A header that is sent twice arrives joined by a comma, so a key with a comma must be in quotes. The pieces of the second
// form are those of three characters or more, of two and of one: all but a pair of quotes with nothing in between.
const KEY = /^(?:"[ !#-~]{1,255}"|[ -+\--~]{3,255}|[ !#-+\--~][ -+\--~]?|"[ !#-+\--~]?)$/;

/** The key without the quotes that the draft puts around it and many callers do not. */
export const IdempotencyKey = z.pipe(
  z
    .string()
    .check(
      z.regex(
        KEY,
        `${IDEMPOTENCY_HEADER} must be one key of 1 to 255 printable ASCII characters, in quotes if one is a comma`,
      ),
    ),
  z.transform((key: string) => key.replace(/^"(.+)"$/, "$1")),
);

/** What is stored, and whether it is what was sent. */
export interface Stored {
  json: StoredJson;
  same: boolean;
}

/** Runs a statement of `insertSql`. */
export async function insertOnce(statement: D1PreparedStatement): Promise<Stored> {
  const [row] = await rowsOf<{ json: StoredJson; same: 0 | 1 }>(statement);
  if (!row) throw new Error("D1 gave no row for an INSERT … RETURNING.");
  return { json: row.json, same: row.same === 1 };
}

/**
 * Stores a resource by `insert`, which is repeated while D1's failures may pass if there is a key. Throws 422 where the
 * key has already added another one; `what` names it.
 */
export async function storeOnce(
  what: string,
  idempotencyKey: string | undefined,
  session: D1DatabaseSession,
  insert: () => Promise<Stored>,
): Promise<StoredJson> {
  const { json, same } = await (idempotencyKey === undefined ? insert() : retryTransient(insert));
  if (same) return json;
  const message = `This ${IDEMPOTENCY_HEADER} has already added another ${what}.`;
  throw new ApiError("unprocessable_content", message, bookmarkOf(session));
}
