// How backup and restore reach the store of an environment: `wrangler d1 execute` works the same for the local store and for
// those of the account. Rows arrive as JSON text that SQLite prints, because Wrangler rounds integers beyond 2^53.

import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isTransient } from "../../src/d1/database.ts";
import { INT64 } from "../../src/values/int64.ts";
import { applyLocalMigrations, LOCAL } from "../environment.ts";
import { insist, WranglerFailed, withFile, wrangler } from "../wrangler.ts";
import { COVERED_COLUMNS, Failure, type Line, ROW_JSON, STORED_COLUMNS, storedLine } from "./lines.ts";

// What Wrangler prints if Cloudflare's API, or something in front of it, fails with 429 or 5xx or cannot be reached.
const UNREACHABLE =
  /malformed response|fetch failed|\bE(CONN|PIPE|TIMEDOUT|AI_AGAIN)|socket|\b(429|50[0234])\b|Retry-After|throttling|unavailable/i;

const isTemporary = (failure: unknown) =>
  failure instanceof WranglerFailed && (isTransient(failure.message) || UNREACHABLE.test(failure.message));

export type Connection = Awaited<ReturnType<typeof connect>>;

/** Waits `pause` milliseconds before a first retry, and twice as long before each further one. Throws WranglerFailed. */
export async function connect(environment: string, run: typeof wrangler = wrangler, pause = 1000) {
  const isLocal = environment === LOCAL;
  const flags = isLocal ? ["--local"] : ["--env", environment, "--remote"];
  // In a fresh clone this creates the local store. A deployment updates those of the account.
  if (isLocal) await applyLocalMigrations();
  const read = (...args: string[]) => insist(() => run(["d1", ...args]), pause, isTemporary);

  return {
    environment,
    isLocal,
    flags: flags.join(" "),
    wait: (failures: number) => setTimeout(pause * 2 ** failures),

    /** The texts that a SELECT of one column returns. */
    async query(sql: string): Promise<string[]> {
      const output = await read("execute", "DB", ...flags, "--json", "--command", sql);
      const [{ results }] = JSON.parse(output) as [{ results: Record<string, unknown>[] }];
      return results.flatMap(Object.values).map(String);
    },

    /** Runs statements once, in a file. In an account this is an import, and D1 rejects all queries while it runs. */
    async load(sql: string): Promise<void> {
      // Different each time, so that D1 does not take it for an earlier one that failed.
      const script = `-- ${randomUUID()}\n${sql}`;
      await withFile("wrangler-", script, (file) => run(["d1", "execute", "DB", ...flags, "--json", "--file", file]));
    },

    /** The current point in time of a database in an account. */
    async bookmark(): Promise<string> {
      return JSON.parse(await read("time-travel", "info", "DB", "--env", environment, "--json")).bookmark;
    },
  };
}

/** Throws a Failure unless the store has exactly the columns that a backup covers. */
export async function checkColumns({ environment, flags, query }: Connection): Promise<void> {
  const stored = (await query(STORED_COLUMNS)).join(", ");
  const covered = COVERED_COLUMNS.map((column) => `pets.${column}`).join(", ");
  if (stored === covered) return;
  throw new Failure(`${environment} has the columns ${stored || "(none)"}, but this version covers ${covered}.
If columns are missing, run: npx wrangler d1 migrations apply DB ${flags}
If there are more, add them to scripts/backup/lines.ts, or use the version that has them.`);
}

// A page is one string, which D1 limits to 2,000,000 bytes. Starting Wrangler for each takes a second.
const PAGE = { firstRows: 350, bytes: 1_000_000, mostBytes: 1_900_000, growth: 8 };
const TOO_LARGE = "TOO LARGE"; // instead of a page

/**
 * The rows after the id `after`, or all, in ascending order of id and up to the greatest id at the start: the same whatever
 * callers add meanwhile, because ids rise and nothing changes. D1 bills every row that is read, so a page has a plain LIMIT.
 * Throws a Failure if a row is too large for a page of its own.
 */
export async function* readLines({ query, flags }: Connection, after?: bigint): AsyncGenerator<Line, undefined> {
  const [last] = await query("SELECT CAST(id AS TEXT) FROM pets ORDER BY pets.id DESC LIMIT 1");
  let first = after === undefined ? INT64.minimum : after + 1n;
  let rows = PAGE.firstRows;
  while (last && first <= BigInt(last)) {
    const range = `FROM pets WHERE id BETWEEN ${first} AND ${last} ORDER BY pets.id LIMIT ${rows}`;
    const [page] = await query(`SELECT iif(sum(octet_length(text)) > ${PAGE.mostBytes}, '${TOO_LARGE}',
      coalesce(group_concat(text, char(10)), '')) FROM (SELECT ${ROW_JSON} AS text ${range})`).catch(
      (failure: Error) => {
        // What SQLite says beyond its own limit.
        if (failure.message.includes("too big")) return [TOO_LARGE];
        throw failure;
      },
    );
    if (!page) return;
    if (page !== TOO_LARGE) {
      const lines = page.split("\n").map(storedLine);
      yield* lines;
      first = (lines.at(-1)?.id ?? first) + 1n;
      rows = Math.ceil(lines.length * Math.min(PAGE.bytes / Buffer.byteLength(page), PAGE.growth));
    } else if (rows > 1) {
      // The names have suddenly become longer.
      rows = Math.ceil(rows / PAGE.growth);
    } else {
      const [id] = await query(`SELECT CAST(id AS TEXT) ${range}`);
      throw new Failure(`Animal ${id} is too large to be read. Only SQL can have stored it. Shorten its name, for example:
npx wrangler d1 execute DB ${flags} --command "UPDATE pets SET name = substr(name, 1, 1000) WHERE id = ${id}"`);
    }
  }
}
