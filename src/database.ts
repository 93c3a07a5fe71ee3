// What is particular to D1, apart from the SQL: sessions, and failures that pass. A session reads from the replica that
// is nearest, but never from before its bookmark, so that a caller who echoes bookmarks reads its own writes anywhere.
// https://developers.cloudflare.com/d1/best-practices/read-replication/

import * as z from "zod/mini";

export const BOOKMARK_HEADER = "x-d1-bookmark";

/** A bookmark as D1 gives them. What D1 does with anything else is not documented, so nothing else reaches it. */
export const Bookmark = z.string().check(
  z.regex(/^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/, {
    error: `${BOOKMARK_HEADER} must be a bookmark as a response of the service carried it`,
  }),
);

export function openSession(db: D1Database, bookmark: string | undefined): D1DatabaseSession {
  return db.withSession(bookmark ?? "first-unconstrained");
}

/** The response header with the session's newest bookmark: none before its first query. */
export function bookmarkOf(session: D1DatabaseSession): Record<string, string> {
  const bookmark = session.getBookmark();
  return bookmark ? { [BOOKMARK_HEADER]: bookmark } : {};
}

// https://developers.cloudflare.com/d1/observability/debug-d1/ lists the messages; D1 gives no codes.
const PASSING = /network connection lost|reset|transient|overloaded|exceeded timeout|timed out/i;

/** Whether a failure of D1 may be over when the caller tries again: overload, a lost connection, a reset, a timeout. */
export function mayPass(failure: unknown): boolean {
  return failure instanceof Error && PASSING.test(failure.message);
}

const TRIES = 3;
const FIRST_WAIT = 100; // milliseconds, at most
const NO_MORE_TRIES_AFTER = 5_000; // milliseconds

/**
 * Makes a round trip that is safe to repeat, and repeats it while D1 fails in passing. D1 does so itself for reads only:
 * whether a write that failed was stored is unknown. Waits are random between 0 and 100, then 200 ms ("full jitter").
 */
export async function retried<T>(trip: () => Promise<T>): Promise<T> {
  const started = Date.now();
  for (let tries = 1; ; tries++) {
    try {
      return await trip();
    } catch (failure) {
      if (tries === TRIES || !mayPass(failure) || Date.now() - started > NO_MORE_TRIES_AFTER) throw failure;
      await scheduler.wait(Math.random() * FIRST_WAIT * tries);
    }
  }
}
