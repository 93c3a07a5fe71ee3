// What is logged about an API key: each kind of line at most once an hour for each key in this isolate, because a
// caller can send many requests a second.

export interface ApiKey {
  /** The name of its secret. */
  name: string;
  caller: string;
}

const HOUR = 3_600_000; // milliseconds

/** When each kind of line was last logged. A secret with a new value is a different key. */
const loggedAt = new WeakMap<ApiKey, Map<string, number>>();

/** Calls `log`, unless it was called for this key and kind of line within the last hour. */
export function logHourly(key: ApiKey, kind: string, log: () => void): void {
  const times = loggedAt.get(key) ?? new Map<string, number>();
  const now = Date.now();
  if (now - (times.get(kind) ?? Number.NEGATIVE_INFINITY) < HOUR) return;
  loggedAt.set(key, times.set(kind, now));
  log();
}
