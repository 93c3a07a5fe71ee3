// What every response carries. `Access-Control-Allow-Origin: *` is safe here: the key is sent by the calling script
// and never by the browser on its own, so another site gains nothing from a visitor.

/** Which version of the Worker made a response: the id of the version metadata binding. */
export const VERSION_HEADER = "Worker-Version";

// A Headers object, because copying one costs half of what filling one costs.
const COMMON = new Headers({
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "Allow, Deprecation, Link, Location, Retry-After, Sunset, WWW-Authenticate, Worker-Version, x-d1-bookmark",
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
});
const JSON_HEADERS = new Headers([...COMMON, ["Content-Type", "application/json"]]);

// The same for every path, existing or not: a preflight carries no key, so it must not tell which paths exist.
const PREFLIGHT_HEADERS = new Headers([
  ...COMMON,
  ["Access-Control-Allow-Methods", "GET, HEAD, POST"],
  ["Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, x-d1-bookmark"],
  ["Access-Control-Max-Age", "86400"],
]);

/** A response whose body is JSON text already. */
export function json(text: string, status: number, headers: Record<string, string> = {}): Response {
  return withHeaders(new Response(text, { status, headers: JSON_HEADERS }), headers);
}

export function withHeaders(response: Response, headers: Record<string, string>): Response {
  for (const name in headers) response.headers.set(name, headers[name] ?? "");
  return response;
}

export function preflight(): Response {
  return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
}
