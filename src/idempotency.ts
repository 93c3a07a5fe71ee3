// The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): a creation that is sent again under its key is
// answered again and not repeated. The key stands in the animal's own row, so it never expires, and one statement both
// tries the key and stores the animal.

import * as z from "zod/mini";

export const IDEMPOTENCY_HEADER = "Idempotency-Key";

/** The key without the quotes that the draft puts around it and many callers do not. */
export const IdempotencyKey = z.pipe(
  z.pipe(
    z.string(),
    z.transform((key: string) => key.replace(/^"(.*)"$/, "$1")),
  ),
  z.string().check(z.regex(/^[ -~]{1,255}$/, `${IDEMPOTENCY_HEADER} must be 1 to 255 printable ASCII characters`)),
);
