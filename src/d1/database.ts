// What is specific to D1 apart from the SQL: sessions, a deadline, and what its failures mean. A session reads from the
// nearest replica, but never a state older than its bookmark, so a caller who sends bookmarks back reads its own writes
// everywhere.
// https://developers.cloudflare.com/d1/best-practices/read-replication/

import { StoreFailure } from "../values/store-failure.ts";

/**
 * The format of D1's bookmarks today. D1 does not document what it does with anything else, so nothing else reaches it.
 */
const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;

/** Starts at a bookmark, if any. If its format is unknown, reads from the primary, which is always up to date. */
export function openSession(db: D1Database, bookmark: string | null): D1DatabaseSession {
  if (bookmark === null) return db.withSession("first-unconstrained");
  return db.withSession(BOOKMARK.test(bookmark) ? bookmark : "first-primary");
}

/** What a statement does. An idempotent write stores something once, however often it is executed. */
type StatementKind = "read" | "write" | "idempotent write";

type Read<T> = (rows: Record<string, unknown>[]) => T;

const DEADLINE = 20_000; // milliseconds, because callers wait 30 seconds
const MAX_TRIES = 3;
const FIRST_WAIT = 100; // milliseconds, at most

/**
 * Runs a statement, and returns `read(rows)`. The rows may lack what it selects. Throws StoreFailure, at the latest
 * when the deadline for all tries has passed: D1 was reported to hang for 80 seconds. What D1 answers after that is
 * ignored, and D1 may still have carried out the statement.
 */
export async function runStatement<T>(
  statement: D1PreparedStatement,
  read: Read<T>,
  kind: StatementKind = "read",
): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const timedOut = new Error(`D1 timed out: no answer within ${DEADLINE / 1000} s.`);
    reject(failureOf(timedOut, kind, TRANSIENT));
  }, DEADLINE);
  try {
    return await Promise.race([timeout, tryStatement(statement, read, kind)]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * D1 itself retries only reads: after a failed write, it is unknown whether anything was stored. So an idempotent write
 * is repeated if that may help, until the deadline, after a random time of at most 100 and then 200 ms ("full jitter").
 */
async function tryStatement<T>(statement: D1PreparedStatement, read: Read<T>, kind: StatementKind): Promise<T> {
  const deadline = Date.now() + DEADLINE;
  for (let tries = 1; ; tries++) {
    const wait = Math.random() * FIRST_WAIT * tries;
    try {
      const { results } = await statement.all();
      if (!Array.isArray(results)) throw new Error("D1 did not return a list of rows.");
      return read(results);
    } catch (cause) {
      const meaning = meaningOf(cause);
      const isLast = kind !== "idempotent write" || tries === MAX_TRIES || Date.now() + wait >= deadline;
      if (isLast || !meaning.isWorthRetrying) throw failureOf(cause, kind, meaning);
    }
    await scheduler.wait(wait);
  }
}

/** What a message of D1 means. Without `isRefused`, it is unknown whether D1 has carried out the statement. */
interface Meaning {
  isRefused?: boolean;
  /** Seconds to wait before a retry. Undefined if the failure is not transient. */
  retryAfter?: number;
  /** Whether repeating the statement immediately may succeed, and does not make it worse. */
  isWorthRetrying?: boolean;
}

const REFUSED: Meaning = { isRefused: true };
const TRANSIENT: Meaning = { retryAfter: 1, isWorthRetrying: true };
const OVERLOADED: Meaning = { retryAfter: 10 };

/** An error of SQLite, which quotes a whole CHECK, and so any word on several lines. The code at its end decides. */
const sqliteError = (code: string) => RegExp(`^D1_ERROR: ([^]*: )?SQLITE_(${code})(_\\w+)?( \\(extended: [^)]*\\))?$`);

/**
 * What D1's messages mean: the first pattern that matches decides. D1 has no error codes.
 * https://developers.cloudflare.com/d1/observability/debug-d1/ lists some of its messages; the others were reported.
 */
const MESSAGES: [pattern: RegExp, meaning: Meaning][] = [
  // A gateway's response instead of D1's, which reports errors as JSON. First, because it can contain any words.
  [/^(D1_ERROR: )?Failed to parse body as JSON, got:/i, TRANSIENT],
  // Before all that look for words, which a CHECK can have.
  [sqliteError("ERROR|CONSTRAINT"), REFUSED],
  // Limits of the database and of the account. Before "reset", which they also say.
  // https://developers.cloudflare.com/d1/platform/limits/
  [/^(D1_ERROR: )?(Exceeded maximum |Your account has exceeded |.*\bfree tier\b)/i, REFUSED],
  [/^(D1_ERROR: )?Currently processing a long-running (ex|im)port/i, { ...REFUSED, ...TRANSIENT }],
  [/^(D1_ERROR: )?database is locked/i, { ...REFUSED, ...TRANSIENT }],
  [sqliteError("BUSY"), { ...REFUSED, ...TRANSIENT }],
  // Before "reset", which these say, too.
  [/overloaded|queued|(CPU( time)?|memory) limit/i, OVERLOADED],
  [/network connection lost|\breset\b|D1_RESET_DO|transient issue|time(d )?out/i, TRANSIENT],
  [/replica disconnected from primary|internal error; reference|no longer active/i, TRANSIENT],
  [/can't read from request stream/i, TRANSIENT],
];

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : "");

const meaningOf = (cause: unknown): Meaning => MESSAGES.find(([pattern]) => pattern.test(messageOf(cause)))?.[1] ?? {};

function failureOf(cause: unknown, kind: StatementKind, { isRefused = false, retryAfter }: Meaning): StoreFailure {
  const message = messageOf(cause);
  const lacksSchema = /no such (table|column|index)|no column named|ON CONFLICT clause does not match/.test(message);
  const explained = lacksSchema ? new Error(`${message} (see "A 500" in docs/OPERATIONS.md)`) : cause;
  return new StoreFailure(explained, { mayBeStored: kind === "write" && !isRefused, retryAfter });
}
