// What is particular to D1, apart from the SQL: sessions, and failures that may pass. A session reads from the replica
// that is nearest, but never from before its bookmark, so that a caller who echoes bookmarks reads its own writes anywhere.
// https://developers.cloudflare.com/d1/best-practices/read-replication/

import { ApiError } from "../http/errors.ts";

export const BOOKMARK_HEADER = "x-d1-bookmark";

/** A bookmark as D1 gives them today. What D1 does with anything else is not documented, so nothing else reaches it. */
const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;

/** Begins at the request's bookmark. One of a form that we do not know reads from the primary, which has seen everything. */
export function openSession(db: D1Database, { headers }: Request): D1DatabaseSession {
  const bookmark = headers.get(BOOKMARK_HEADER);
  if (bookmark === null) return db.withSession("first-unconstrained");
  return db.withSession(BOOKMARK.test(bookmark) ? bookmark : "first-primary");
}

/** The response header with the session's newest bookmark: none before its first query. */
export function bookmarkOf(session: D1DatabaseSession): Record<string, string> {
  const bookmark = session.getBookmark();
  return bookmark ? { [BOOKMARK_HEADER]: bookmark } : {};
}

/** The rows that a statement gives. Throws 503 where D1 fails in a way that may pass. */
export async function rowsOf<Row>(statement: D1PreparedStatement): Promise<Row[]> {
  try {
    const { results } = await statement.all<Row>();
    return results;
  } catch (failure) {
    if (!(failure instanceof Error && TRANSIENT.test(failure.message))) throw failure;
    const message = "The store cannot be reached at the moment; try again.";
    throw new ApiError("service_unavailable", message, { "Retry-After": "1" }, failure);
  }
}

// D1 gives no codes. https://developers.cloudflare.com/d1/observability/debug-d1/ lists some of its messages; the others
// were seen in production.
const TRANSIENT = new RegExp(
  [
    "network connection lost",
    "\\breset\\b",
    "transient issue",
    "overloaded",
    "too many requests queued",
    "time(d )?out",
    "replica disconnected from primary",
    "internal error; reference",
    "long-running (ex|im)port",
    "no longer active",
    "failed to parse body as json, got: error code: 5\\d\\d",
    "database is locked|SQLITE_BUSY",
    "can't read from request stream",
  ].join("|"),
  "i",
);

const TRIES = 3;
const FIRST_WAIT = 100; // milliseconds, at most
const NO_MORE_TRIES_AFTER = 5_000; // milliseconds

/**
 * Makes a round trip that is safe to repeat, and repeats it while D1's failures may pass. D1 does so itself for reads only:
 * whether a write that failed was stored is unknown. Waits are random between 0 and 100, then 200 ms ("full jitter").
 */
export async function retryTransient<T>(trip: () => Promise<T>): Promise<T> {
  const started = Date.now();
  for (let tries = 1; ; tries++) {
    try {
      return await trip();
    } catch (failure) {
      const isTransient = failure instanceof ApiError && failure.code === "service_unavailable";
      if (tries === TRIES || !isTransient || Date.now() - started > NO_MORE_TRIES_AFTER) throw failure;
      await scheduler.wait(Math.random() * FIRST_WAIT * tries);
    }
  }
}
