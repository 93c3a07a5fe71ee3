// The headers of every response. `Access-Control-Allow-Origin: *` is safe here: browsers never add the key by
// themselves, so a different site cannot use a visitor's key. For the same reason, a script may read all headers: a
// bearer token is not one of the credentials for which `*` would mean nothing (Fetch standard, "CORS protocol").

import { BOOKMARK_HEADER } from "./bookmark.ts";
import { IDEMPOTENCY_HEADER } from "./idempotency.ts";

/** Which commit the service was built from, or "unknown". */
export const VERSION_HEADER = "Worker-Version";

/** A deployment defines it (scripts/deploy.ts), so that it is compiled in. A changed secret keeps the code. */
declare const COMMIT: string | undefined;

/** Which key a request had: the name of the secret that holds it. */
export const KEY_NAME_HEADER = "API-Key-Name";

/** The request headers that a script from another origin may send. */
export const ALLOWED_HEADERS = ["Authorization", "Content-Type", IDEMPOTENCY_HEADER, BOOKMARK_HEADER];

// Headers objects, because copying one costs half as much as filling one.
const COMMON = new Headers({
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "*",
  "Cache-Control": "no-store",
  [VERSION_HEADER]: typeof COMMIT === "undefined" ? "unknown" : COMMIT,
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
