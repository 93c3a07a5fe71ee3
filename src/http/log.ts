// The log: lines of JSON, whose members Workers Logs shows as fields; a list of lines shows only `message`.
// https://developers.cloudflare.com/workers/observability/logs/workers-logs/#logging-structured-json-objects

/**
 * Logs a failure and its cause, with its stack, for one request, and its caller if the request had a valid key. The
 * query is left out, because a caller may put something confidential there, such as an API key.
 */
export function logFailure(failure: string, cause: unknown, { method, url, headers }: Request, caller?: string): void {
  const [, path] = /^[a-z]+:\/\/[^/?]*([^?]*)/.exec(url) ?? [];
  const text = textOf(cause);
  const message = `${failure}: ${text.split("\n")[0]}`;
  console.error(JSON.stringify({ message, failure, cause: text, method, path, ray: headers.get("cf-ray"), caller }));
}

/** Logs that a key is in use, by the name of its secret. Without `failure`, by which operators find failures. */
export function logUse(keyName: string, caller?: string): void {
  console.log(JSON.stringify({ message: `${keyName} is in use (logged once an hour)`, caller }));
}

/** A thrown value may be anything, even a value that throws when it is printed. */
function textOf(cause: unknown): string {
  try {
    return String(cause instanceof Error ? (cause.stack ?? cause) : cause);
  } catch {
    return "a value that cannot be printed";
  }
}
