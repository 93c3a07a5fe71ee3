// Maintenance: an operator closes the service with a secret, and opens it by deleting that, each with one command of
// Wrangler.

import { ApiError } from "./errors.ts";
import type { Context } from "./routing.ts";

export const CLOSED = "The service is closed for maintenance, and this request was not carried out; try again later.";

const RETRY_AFTER = "30"; // seconds

/**
 * Throws 503 while the secret MAINTENANCE exists. Its value does not matter: Enter at Wrangler's prompt stores an empty
 * one.
 */
export function rejectWhileClosed(_: Context, { MAINTENANCE }: Env): void {
  if (MAINTENANCE !== undefined) throw new ApiError("closed", CLOSED, { "Retry-After": RETRY_AFTER });
}
