// The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): sending a creation again with its key returns
// the same response and creates nothing. The key is stored in the row that it created, so it never expires.

import * as z from "zod/mini";

export const IDEMPOTENCY_HEADER = "Idempotency-Key";

// In double quotes, as in the draft, or without. A repeated header arrives joined by a comma, so a key with a comma
// needs them.
const KEY = /^(?:"[ !#-~]{1,255}"|[ !#-+\--~]{1,255})$/;
const mayBeRepeated = (header: string) => header.includes(",") && !/^"[^"]*"$/.test(header);

const SEND_ONCE = `${IDEMPOTENCY_HEADER} must be sent only once (put a key that contains a comma in double quotes)`;
const CHARACTERS = `${IDEMPOTENCY_HEADER} must be 1 to 255 printable ASCII characters other than double quotes`;

/** The key, without its double quotes. */
export const IdempotencyKey = z.pipe(
  z.string().check(z.regex(KEY, { error: ({ input }) => (mayBeRepeated(String(input)) ? SEND_ONCE : CHARACTERS) })),
  z.transform((header: string) => header.replaceAll('"', "")),
);
