// Plain HTTP: Cloudflare serves a Worker over it, and `workers.dev` has no setting against that. A redirect would hide
// the mistake, because clients follow it and send the key in plain text again with the next request.

import { logHourly } from "./api-key.ts";
import { ApiError } from "./errors.ts";
import { logFailure } from "./log.ts";
import type { Context } from "./routing.ts";

export const PLAIN_HTTP =
  "Send requests over https: a key that is sent over plain HTTP can be read on the way. Ask the operator for a new " +
  "one.";

/** Throws 403 if a request came to Cloudflare over plain HTTP. One without cf-ray, such as a local one, did not. */
export function rejectPlainHttp({ request, url, apiKey }: Context): void {
  if (!url.startsWith("http:") || !request.headers.has("cf-ray")) return;
  const cause = `The key in ${apiKey.name} was sent over plain HTTP, and can have been read on the way: replace it.`;
  logHourly(apiKey, "plain HTTP", () => logFailure("configuration", cause, request, apiKey.caller));
  throw new ApiError("plain_http", PLAIN_HTTP);
}
