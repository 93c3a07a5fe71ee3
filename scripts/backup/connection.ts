// How backup and restore reach the store of an environment: `wrangler d1 execute` works the same for the local store and for
// those of the account. Rows arrive as JSON text that SQLite prints, because Wrangler rounds integers beyond 2^53.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { isTransient } from "../../src/d1/database.ts";
import { INT64 } from "../../src/values/int64.ts";
import { applyLocalMigrations } from "../migrations.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";
import { COVERED_COLUMNS, Failure, type Line, ROW_JSON, STORED_COLUMNS, storedLine } from "./lines.ts";

/** The environment of `npm run dev`, which works without an account. */
export const LOCAL = "local";

export const TRIES = 5;

// What Wrangler prints if Cloudflare's API, or something in front of it, fails with 429 or 5xx or cannot be reached.
const UNREACHABLE =
  /malformed response|fetch failed|\bE(CONN|PIPE|TIMEDOUT|AI_AGAIN)|socket|\b(429|50[0234])\b|Retry-After|throttling|unavailable/i;

export type Connection = Awaited<ReturnType<typeof connect>>;

/** Waits `pause` milliseconds before a first retry, and twice as long before each further one. Throws WranglerFailed. */
export async function connect(environment: string, run: typeof wrangler = wrangler, pause = 1000) {
  const isLocal = environment === LOCAL;
  const flags = isLocal ? ["--local"] : ["--env", environment, "--remote"];
  // In a fresh clone this creates the local store. A deployment updates those of the account.
  if (isLocal) await applyLocalMigrations();
  // Only its owner can enter this folder: the SQL has Idempotency-Keys.
  const folder = mkdtempSync(join(tmpdir(), "wrangler-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const wait = (failures: number) => setTimeout(pause * 2 ** failures);

  /** Runs a command that only reads, and runs it again if it fails transiently. */
  async function read(...args: string[]): Promise<string> {
    for (let failures = 0; ; failures++) {
      try {
        return await run(["d1", ...args]);
      } catch (failure) {
        if (!(failure instanceof WranglerFailed) || failures + 1 === TRIES) throw failure;
        if (!isTransient(failure.message) && !UNREACHABLE.test(failure.message)) throw failure;
        await wait(failures);
      }
    }
  }

  return {
    environment,
    isLocal,
    wait,
    flags: flags.join(" "),

    /** The texts that a SELECT of one column returns. */
    async query(sql: string): Promise<string[]> {
      const output = await read("execute", "DB", ...flags, "--json", "--command", sql);
      const [{ results }] = JSON.parse(output) as [{ results: Record<string, unknown>[] }];
      return results.flatMap(Object.values).map(String);
    },

    /** Runs statements once, in a file. In an account this is an import, and D1 rejects all queries while it runs. */
    async load(sql: string): Promise<void> {
      const script = join(folder, "script.sql");
      // Different each time, so that D1 does not take it for an earlier one that failed.
      writeFileSync(script, `-- ${randomUUID()}\n${sql}`);
      await run(["d1", "execute", "DB", ...flags, "--json", "--file", script]);
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
const TOO_LARGE = "too large";

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
    const select = `SELECT ${ROW_JSON} AS text FROM pets WHERE id >= ${first} AND id <= ${last} ORDER BY id LIMIT ${rows}`;
    const [page] = await query(`SELECT iif(sum(octet_length(text)) > ${PAGE.mostBytes}, '${TOO_LARGE}',
      coalesce(group_concat(text, char(10)), '')) FROM (${select})`).catch((failure: Error) => {
      // What D1 says beyond its own limit.
      if (!failure.message.includes("too big")) throw failure;
      return [TOO_LARGE];
    });
    if (!page) return;
    if (page !== TOO_LARGE) {
      const lines = page.split("\n").map(storedLine);
      for (const line of lines) {
        yield line;
        first = line.id + 1n;
      }
      rows = Math.ceil(lines.length * Math.min(PAGE.bytes / Buffer.byteLength(page), PAGE.growth));
    } else if (rows > 1) {
      // The names have suddenly become longer.
      rows = Math.ceil(rows / PAGE.growth);
    } else {
      const [id] = await query(`SELECT CAST(id AS TEXT) FROM pets WHERE id >= ${first} ORDER BY pets.id LIMIT 1`);
      throw new Failure(`Animal ${id} is too large to be read. Only SQL can have stored it. Shorten its name, for example:
npx wrangler d1 execute DB ${flags} --command "UPDATE pets SET name = substr(name, 1, 1000) WHERE id = ${id}"`);
    }
  }
}
