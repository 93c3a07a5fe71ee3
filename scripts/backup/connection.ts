// How backup and restore reach the store of an environment: `wrangler d1 execute` works the same for the local store and for
// those of the account. Rows arrive as JSON text that SQLite prints, because Wrangler rounds integers beyond 2^53.

import { randomUUID } from "node:crypto";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { isTransient } from "../../src/d1/database.ts";
import { INT64 } from "../../src/values/int64.ts";
import { applyLocalMigrations } from "../migrations.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";
import { COVERED_COLUMNS, type Line, ROW_JSON, STORED_COLUMNS, storedLine } from "./lines.ts";

/** Why a command did not do its work, in words for the person who ran it. */
export class Failure extends Error {}

/** The environment of `npm run dev`, which works without an account. */
export const LOCAL = "local";

export const TRIES = 5;

// What Wrangler prints if Cloudflare's API, or something in front of it, fails with 429 or 5xx or cannot be reached.
const UNREACHABLE =
  /malformed response|fetch failed|\bE(CONN|PIPE|TIMEDOUT|AI_AGAIN)|socket|\b(429|50[0234])\b|Retry-After|throttling|unavailable/i;

// What SQLite says of a string that is longer than D1 allows, and of `zeroblob(3e9)`.
const TOO_BIG = /string or blob too big/;

type Row = Record<string, unknown>;
export type Connection = Awaited<ReturnType<typeof connect>>;

/** Waits `pause` milliseconds before a first retry, and twice as long before each further one. Throws WranglerFailed. */
export async function connect(environment: string, run: typeof wrangler = wrangler, pause = 1000) {
  const isLocal = environment === LOCAL;
  const flags = isLocal ? ["--local"] : ["--env", environment, "--remote"];
  // In a fresh clone this creates the local store. A deployment updates those of the account.
  if (isLocal) await applyLocalMigrations();
  const d1 = (...args: string[]) => run(["d1", ...args]);
  const wait = (failures: number) => setTimeout(pause * 2 ** failures);

  /** Runs a command that can be repeated, and repeats it while it fails transiently, or is too big: it can depend on the failures. */
  async function repeat(command: (failures: number) => string[]): Promise<string> {
    for (let failures = 0; ; failures++) {
      try {
        return await d1(...command(failures));
      } catch (failure) {
        if (!(failure instanceof WranglerFailed) || failures + 1 === TRIES) throw failure;
        const { message } = failure;
        if (!isTransient(message) && !UNREACHABLE.test(message) && !TOO_BIG.test(message)) throw failure;
        await wait(failures);
      }
    }
  }

  return {
    environment,
    isLocal,
    wait,
    migrate: `npx wrangler d1 migrations apply DB ${flags.join(" ")}`,

    /** The rows of a statement that can be repeated. */
    async query(sql: (failures: number) => string): Promise<Row[]> {
      const output = await repeat((failures) => ["execute", "DB", ...flags, "--json", "--command", sql(failures)]);
      const [{ results }] = JSON.parse(output) as [{ results: Row[] }];
      return results;
    },

    /** Runs statements once, in a file. In an account this is an import, and D1 rejects all queries while it runs. */
    async load(statements: Iterable<string>): Promise<void> {
      // Only its owner can enter this folder: the SQL has Idempotency-Keys.
      const folder = mkdtempSync(join(tmpdir(), "wrangler-"));
      const remove = () => rmSync(folder, { recursive: true, force: true });
      process.once("exit", remove);
      try {
        const script = join(folder, "script.sql");
        // Different each time, so that D1 does not take it for an earlier one that failed.
        writeFileSync(script, `-- ${randomUUID()}\n`);
        for (const statement of statements) appendFileSync(script, statement);
        await d1("execute", "DB", ...flags, "--json", "--file", script);
      } finally {
        remove();
        process.off("exit", remove);
      }
    },

    /** The current point in time of a database in an account. */
    async bookmark(): Promise<string> {
      return JSON.parse(await repeat(() => ["time-travel", "info", "DB", "--env", environment, "--json"])).bookmark;
    },
  };
}

/** Throws a Failure unless the store has exactly the columns that a backup covers. */
export async function checkColumns(store: Connection): Promise<void> {
  const stored = (await store.query(() => STORED_COLUMNS)).map(({ name }) => String(name));
  const covered = COVERED_COLUMNS.map((column) => `pets.${column}`);
  const forgotten = stored.filter((name) => !covered.includes(name)).join(", ");
  const remedy = "add it to scripts/backup/lines.ts, or use the version that has it";
  if (forgotten) throw new Failure(`No backup covers ${forgotten}: ${remedy}.`);
  const missing = covered.filter((name) => !stored.includes(name)).join(", ");
  if (missing) throw new Failure(`${store.environment} lacks ${missing}. Apply the migrations:\n${store.migrate}`);
}

// Starting Wrangler takes a second, so a page should be large. It is one string, which D1 limits to 2,000,000 bytes.
const PAGE_BYTES = { target: 1_000_000, most: 1_900_000 };
// The longest lines fit, too.
const FIRST_ROWS = 350;
const GROWTH = 8;

/** A row with one line for each animal, or with NULL. A plain LIMIT, because D1 bills every row that is read. */
const pageSql = (first: bigint, last: string, rows: number) => `
  SELECT iif(sum(octet_length(text)) > ${PAGE_BYTES.most}, zeroblob(3e9), group_concat(text, char(10))) AS texts FROM (
    SELECT ${ROW_JSON} AS text FROM pets WHERE id >= ${first} AND id <= ${last} ORDER BY id LIMIT ${rows})`;

/**
 * The rows after the id `after`, or all, in ascending order of id and up to the greatest id at the start, as SQLite prints
 * them. The service changes nothing and its ids rise, so these are the same whatever callers add meanwhile.
 */
export async function* readPages(store: Connection, after?: bigint): AsyncGenerator<string[]> {
  // SQLite finds it without reading the table.
  const [{ id } = {}] = await store.query(() => "SELECT CAST(max(id) AS TEXT) AS id FROM pets");
  if (typeof id !== "string") return;
  let first = after === undefined ? INT64.minimum : after + 1n;
  let rows = FIRST_ROWS;
  while (first <= BigInt(id)) {
    // If names suddenly get longer, a page can be too large and fails, so the next attempt asks for fewer rows.
    const [page] = await store.query((failures) => pageSql(first, id, Math.ceil(rows / GROWTH ** failures)));
    if (typeof page?.["texts"] !== "string") return;
    const texts = page["texts"].split("\n");
    yield texts;
    first = storedLine(texts.at(-1) ?? "").id + 1n;
    rows = texts.length * Math.min(PAGE_BYTES.target / Buffer.byteLength(page["texts"]), GROWTH);
  }
}

/** The same rows as lines. */
export async function* readLines(store: Connection, after?: bigint): AsyncGenerator<Line, undefined> {
  for await (const texts of readPages(store, after)) yield* texts.map(storedLine);
}
