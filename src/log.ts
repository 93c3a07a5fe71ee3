// The log: one line of JSON for each failure, which Workers Logs takes apart into fields.
// https://developers.cloudflare.com/workers/observability/logs/workers-logs/#logging-structured-json-objects

/**
 * Logs what failed and its cause, with its stack, in answering `request`. The query is left out: a caller may put there
 * what is none of the log's business, such as a key.
 */
export function logFailure(failure: string, cause: unknown, request: Request): void {
  const { method, url, headers } = request;
  const [, path] = /^[a-z]+:\/\/[^/?]*([^?]*)/.exec(url) ?? [];
  const text = cause instanceof Error ? (cause.stack ?? String(cause)) : String(cause);
  console.error(JSON.stringify({ failure, cause: text, method, path, ray: headers.get("cf-ray") }));
}
