// The rate limit of each caller, so that one key cannot slow the store down for everybody. Cloudflare counts
// approximately, and for each of its locations. An environment without the binding has no limit.
// https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/

import { logHourly } from "./api-key.ts";
import { ApiError } from "./errors.ts";
import { logFailure } from "./log.ts";
import type { Context } from "./routing.ts";

export const TOO_MANY = "Your rate limit is exceeded, and this request was not carried out; try again later.";

/** In seconds: the period of the limit in wrangler.toml. */
export const RETRY_AFTER = "10";

/** Throws 429 if the caller has sent too many requests. If the binding does not say so, the request is served. */
export async function limitRate(context: Context, { RATE_LIMIT }: Env): Promise<void> {
  if (!RATE_LIMIT || (await isAllowed(RATE_LIMIT, context))) return;
  throw new ApiError("rate_limited", TOO_MANY, { "Retry-After": RETRY_AFTER });
}

async function isAllowed(limit: RateLimit, { request, apiKey }: Context): Promise<boolean> {
  try {
    const { success } = await limit.limit({ key: apiKey.caller });
    return success !== false;
  } catch (failure) {
    logHourly(apiKey, "rate limit", () => logFailure("rate_limit", failure, request, apiKey.caller));
    return true;
  }
}
