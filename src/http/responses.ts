// The headers of every response. `Access-Control-Allow-Origin: *` is safe here: browsers never add the key by
// themselves, so a different site cannot use a visitor's key.

import { BOOKMARK_HEADER } from "../d1/database.ts";
import { IDEMPOTENCY_HEADER } from "./idempotency.ts";

/** Which version of the Worker sent a response: the id in its version metadata binding. */
export const VERSION_HEADER = "Worker-Version";

/** The caller whose key a request had: the name of the secret that holds it. */
export const CALLER_HEADER = "API-Key-Name";

/** The request headers that a script from another origin may send. */
export const ALLOWED_HEADERS = ["Authorization", "Content-Type", IDEMPOTENCY_HEADER, BOOKMARK_HEADER];

/**
 * The response headers that such a script may read. Cloudflare adds cf-ray, which identifies the request in the log.
 */
export const EXPOSED_HEADERS = [
  "Accept-Encoding",
  "Allow",
  "Deprecation",
  "Link",
  "Location",
  "Retry-After",
  "Sunset",
  "WWW-Authenticate",
  CALLER_HEADER,
  VERSION_HEADER,
  "cf-ray",
  BOOKMARK_HEADER,
];

// Headers objects, because copying one costs half as much as filling one.
const COMMON = new Headers({
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": EXPOSED_HEADERS.join(", "),
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
});
const JSON_HEADERS = new Headers([...COMMON, ["Content-Type", "application/json"]]);

/** A response whose body is already JSON text. */
export function json(text: string, status: number, headers: Record<string, string> = {}): Response {
  return withHeaders(new Response(text, { status, headers: JSON_HEADERS }), headers);
}

export function noContent(headers: Record<string, string> = {}): Response {
  return withHeaders(new Response(null, { status: 204, headers: COMMON }), headers);
}

export function withHeaders(response: Response, headers: Record<string, string>): Response {
  for (const name in headers) response.headers.set(name, headers[name] ?? "");
  return response;
}
