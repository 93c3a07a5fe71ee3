// The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): sending a creation again with its key returns the
// same response and creates nothing. The key is stored in the row that it created, so it never expires.

import * as z from "zod/mini";

export const IDEMPOTENCY_HEADER = "Idempotency-Key";

// With quotes, as in the draft, or without. A repeated header arrives joined by a comma, so a key with a comma needs quotes.
const KEY = /^(?:"[ !#-~]{1,255}"|[ !#-+\--~]{1,255})$/;
const MAY_BE_REPEATED = /^(?!"[^"]*"$).*,/s;

const SEND_ONCE = `${IDEMPOTENCY_HEADER} must be sent only once; a key that contains a comma must be in quotation marks`;
const CHARACTERS = `${IDEMPOTENCY_HEADER} must be 1 to 255 printable ASCII characters other than quotation marks`;

/** The key, without its quotes. */
export const IdempotencyKey = z.pipe(
  z
    .string()
    .check(z.regex(KEY, { error: ({ input }) => (MAY_BE_REPEATED.test(String(input)) ? SEND_ONCE : CHARACTERS) })),
  z.transform((header: string) => header.replaceAll('"', "")),
);
