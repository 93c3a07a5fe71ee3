// The log: one line of JSON for each failure, which Workers Logs takes apart into fields.
// https://developers.cloudflare.com/workers/observability/logs/workers-logs/#logging-structured-json-objects

const LOCAL = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/]/;
const HINT =
  "Was .wrangler/state removed, or is another service running in this folder? End this one and start it again.";

/**
 * Logs what failed and its cause, with its stack, in answering `request`. The query is left out: a caller may put there
 * what is none of the log's business, such as a key.
 */
export function logFailure(failure: string, cause: unknown, request: Request): void {
  const { method, url, headers } = request;
  const [, path] = /^[a-z]+:\/\/[^/?]*([^?]*)/.exec(url) ?? [];
  const text = cause instanceof Error ? (cause.stack ?? String(cause)) : String(cause);
  const isDatabase = failure === "service_unavailable" || text.includes("D1_ERROR");
  const hint = LOCAL.test(url) && isDatabase ? HINT : undefined;
  console.error(JSON.stringify({ failure, cause: text, method, path, ray: headers.get("cf-ray"), hint }));
}
