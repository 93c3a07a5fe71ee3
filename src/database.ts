// What is particular to D1, apart from the SQL.

// https://developers.cloudflare.com/d1/observability/debug-d1/ lists the messages; D1 gives no codes.
const PASSING = /network connection lost|reset|transient|overloaded|exceeded timeout|timed out/i;

/** Whether a failure of D1 may be over when the caller tries again: overload, a lost connection, a reset, a timeout. */
export function mayPass(failure: unknown): boolean {
  return failure instanceof Error && PASSING.test(failure.message);
}
