// What every response carries. `Access-Control-Allow-Origin: *` is safe here: the key is sent by the calling script
// and never by the browser on its own, so another site gains nothing from a visitor.

const COMMON_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "Allow, Deprecation, Link, Location, Retry-After, Sunset, WWW-Authenticate, x-d1-bookmark",
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
};

/** A response whose body is JSON text already. */
export function json(
  text: string,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Response {
  return new Response(text, { status, headers: { "Content-Type": "application/json", ...headers } });
}

export function withCommonHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(COMMON_HEADERS)) response.headers.set(name, value);
  return response;
}

/** The same for every path, existing or not: a preflight carries no key, so it must not tell which paths exist. */
export function preflight(): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "Access-Control-Allow-Methods": "GET, HEAD, POST",
      "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, x-d1-bookmark",
      "Access-Control-Max-Age": "86400",
    },
  });
}
