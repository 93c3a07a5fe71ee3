// What is specific to D1 apart from the SQL: sessions, a deadline, and failures that are transient. A session reads
// from the nearest replica, but never a state older than its bookmark, so a caller who sends bookmarks back reads its
// own writes everywhere.
// https://developers.cloudflare.com/d1/best-practices/read-replication/

export const BOOKMARK_HEADER = "x-d1-bookmark";

/**
 * The format of D1's bookmarks today. D1 does not document what it does with anything else, so nothing else reaches it.
 */
const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;

/**
 * Starts at the request's bookmark, if any. If its format is unknown, reads from the primary, which is always up to
 * date.
 */
export function openSession(db: D1Database, { headers }: Request): D1DatabaseSession {
  const bookmark = headers.get(BOOKMARK_HEADER);
  if (bookmark === null) return db.withSession("first-unconstrained");
  return db.withSession(BOOKMARK.test(bookmark) ? bookmark : "first-primary");
}

/**
 * The response header with the session's newest bookmark. Empty if it did not start at one and has not run a statement.
 */
export function bookmarkOf(session: D1DatabaseSession): Record<string, string> {
  const bookmark = session.getBookmark();
  return bookmark ? { [BOOKMARK_HEADER]: bookmark } : {};
}

/** A statement was sent, and D1 failed or its answer is not usable: that is the cause. */
export class StatementFailed extends Error {
  /** Seconds to wait before a retry. Undefined if the failure is not transient. */
  readonly retryAfter: number | undefined;
  /** Whether the statement may have stored something nevertheless, and would store it once more if it were repeated. */
  readonly mayBeStored: boolean;

  constructor(cause: unknown, mayBeStored: boolean) {
    super("D1 failed.", { cause });
    this.retryAfter = retryAfter(messageOf(cause));
    this.mayBeStored = mayBeStored;
  }
}

type Row = Record<string, unknown>;

const DEADLINE = 20_000; // milliseconds, because callers wait 30 seconds
const MAX_TRIES = 3;
const FIRST_WAIT = 100; // milliseconds, at most

/**
 * What `read` makes of the rows that D1 returns, which may lack what the statement selects. Throws StatementFailed, at
 * the latest when the deadline for all tries has passed: D1 was reported to hang for 80 seconds. What D1 answers after
 * that is ignored, and D1 may still have carried out the statement.
 *
 * D1 itself retries only reads: after a failed write, it is unknown whether anything was stored. So a write that is
 * idempotent is repeated while D1 fails transiently but is not overloaded. Waits a random time, up to 100 ms and then
 * 200 ms ("full jitter").
 */
export async function runStatement<T>(
  statement: D1PreparedStatement,
  read: (rows: Row[]) => T,
  effect: "read" | "idempotent" | "write" = "read",
): Promise<T> {
  const { promise: deadline, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`D1 timed out: no answer within ${DEADLINE / 1000} s.`)), DEADLINE);
  try {
    for (let tries = 1; ; tries++) {
      try {
        const { results } = await Promise.race([deadline, statement.all()]);
        if (!Array.isArray(results)) throw new Error("D1 did not return a list of rows.");
        return read(results);
      } catch (failure) {
        const isLast = effect !== "idempotent" || tries === MAX_TRIES;
        if (isLast || retryAfter(messageOf(failure)) !== SOON) throw failure;
      }
      // Throws if the deadline has passed, so nothing is repeated after it.
      await Promise.race([deadline, scheduler.wait(Math.random() * FIRST_WAIT * tries)]);
    }
  } catch (failure) {
    const message = messageOf(failure);
    const lacksSchema = /no such (table|column|index)|no column named|ON CONFLICT clause does not match/.test(message);
    const cause = lacksSchema ? new Error(`${message} (Are the migrations applied? See docs/OPERATIONS.md)`) : failure;
    throw new StatementFailed(cause, effect === "write");
  } finally {
    clearTimeout(timer);
  }
}

// Seconds to wait before a retry.
const SOON = 1;
const LATER = 10;

// Repeating a statement immediately makes these worse.
const OVERLOADED = /overloaded|queued|(CPU time|memory) limit/i;

// D1 has no error codes. https://developers.cloudflare.com/d1/observability/debug-d1/ lists some of its messages; the
// others were reported.
const TRANSIENT = new RegExp(
  [
    "network connection lost",
    "\\breset\\b",
    "D1_RESET_DO",
    "transient issue",
    "time(d )?out",
    "replica disconnected from primary",
    "internal error; reference",
    "long-running (ex|im)port",
    "no longer active",
    "database is locked|SQLITE_BUSY",
    "can't read from request stream",
  ].join("|"),
  "i",
);

// A gateway's response instead of D1's, whatever it contains. D1 reports SQL errors as JSON.
const UNPARSED = /failed to parse body as json, got:/i;

/** Seconds to wait before a retry. Undefined if a failure of D1 with this message is not transient. */
function retryAfter(message: string): number | undefined {
  const isUnparsed = UNPARSED.test(message);
  // An error in the SQL may quote any word.
  if (!isUnparsed && message.includes("SQLITE_ERROR")) return undefined;
  if (OVERLOADED.test(message)) return LATER;
  return isUnparsed || TRANSIENT.test(message) ? SOON : undefined;
}

const messageOf = (failure: unknown): string => (failure instanceof Error ? failure.message : "");
