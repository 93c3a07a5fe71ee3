// The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): sending a creation again with its key returns the
// same response and creates nothing. The key is stored in the row that it created, so it never expires.

import * as z from "zod/mini";

export const IDEMPOTENCY_HEADER = "Idempotency-Key";

/** The message of a 422; `what` is the thing that was created. */
export const usedFor = (what: string) => `This ${IDEMPOTENCY_HEADER} was already used for a different ${what}.`;

// With quotes, as in the draft, or without. A repeated header arrives joined by a comma, so a key with a comma needs quotes.
const KEY = /^(?:"[ !#-~]{1,255}"|[ !#-+\--~]{1,255})$/;

const RULE = `${IDEMPOTENCY_HEADER} must be 1 to 255 printable ASCII characters other than quotation marks; quote it if it contains a comma`;

/** The key, without its quotes. */
export const IdempotencyKey = z.pipe(
  z.string().check(z.regex(KEY, RULE)),
  z.transform((header: string) => header.replaceAll('"', "")),
);
