// How backup and restore reach the store of an environment: `wrangler d1 execute` works the same for the local store and for
// those of the account. Rows arrive as JSON text that SQLite prints, because Wrangler rounds integers beyond 2^53.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { isTransient } from "../../src/d1/database.ts";
import { parseJson } from "../../src/values/json.ts";
import { applyLocalMigrations } from "../migrations.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";
import { lineSql } from "./lines.ts";
import { COVERED, STORED_COLUMNS, TABLES, type Table } from "./tables.ts";

/** Why a command did not do its work, in words for the person who ran it. */
export class Failure extends Error {}

/** The environment of `npm run dev`, which works without an account. */
export const LOCAL = "local";

export const TRIES = 5;

type Row = Record<string, unknown>;
export type Store = Awaited<ReturnType<typeof connect>>;

/** Waits `pause` milliseconds before a first retry, and twice as long before each further one. Throws WranglerFailed. */
export async function connect(environment: string, run: typeof wrangler = wrangler, pause = 1000) {
  const isLocal = environment === LOCAL;
  const flags = isLocal ? ["--local"] : ["--env", environment, "--remote"];
  // In a fresh clone this creates the local store. A deployment updates those of the account.
  if (isLocal) await applyLocalMigrations();
  const d1 = (...args: string[]) => run(["d1", ...args]);
  const wait = (failures: number) => setTimeout(pause * 2 ** failures);
  return {
    environment,
    isLocal,
    wait,
    migrate: `npx wrangler d1 migrations apply DB ${flags.join(" ")}`,

    /** The rows of each statement. Retries while D1 fails transiently: `sql` can depend on the failures. */
    async query(sql: (failures: number) => string[]): Promise<Row[][]> {
      for (let failures = 0; ; failures++) {
        try {
          const output = await d1("execute", "DB", ...flags, "--json", "--command", sql(failures).join(";"));
          return (JSON.parse(output) as { results: Row[] }[]).map(({ results }) => results);
        } catch (failure) {
          const canRetry = failure instanceof WranglerFailed && isTransient(failure.message);
          if (!canRetry || failures + 1 === TRIES) throw failure;
          await wait(failures);
        }
      }
    },

    /** Runs a file of SQL. In an account this is an import, and D1 rejects all queries while it runs. */
    async load(sql: string): Promise<void> {
      const folder = mkdtempSync(join(tmpdir(), "wrangler-"));
      const remove = () => rmSync(folder, { recursive: true, force: true });
      process.once("exit", remove);
      try {
        const file = join(folder, "script.sql");
        // Readable only by its owner, because it has Idempotency-Keys; and different each time, so that D1 does not take it
        // for an earlier one that failed.
        writeFileSync(file, `-- ${randomUUID()}\n${sql}`, { mode: 0o600 });
        await d1("execute", "DB", ...flags, "--json", "--file", file);
      } finally {
        remove();
        process.off("exit", remove);
      }
    },

    /** The current point in time of a database in an account. */
    async bookmark(): Promise<string> {
      return JSON.parse(await d1("time-travel", "info", "DB", "--env", environment, "--json")).bookmark;
    },
  };
}

/** Throws a Failure unless the tables and columns of the store are exactly those that a backup covers. */
export async function checkTables(store: Store): Promise<void> {
  const [columns = []] = await store.query(() => [STORED_COLUMNS]);
  const stored = columns.map(({ name }) => String(name));
  const forgotten = stored.filter((name) => !COVERED.includes(name)).join(", ");
  const remedy = "add it to scripts/backup/tables.ts, or use the version that has it";
  if (forgotten) throw new Failure(`No backup covers ${forgotten}: ${remedy}.`);
  const missing = COVERED.filter((name) => !stored.includes(name)).join(", ");
  if (missing) throw new Failure(`${store.environment} lacks ${missing}. Apply the migrations:\n${store.migrate}`);
}

/** How far each table that is not empty goes: its greatest id, which SQLite finds without reading the table. */
export type Extent = Map<Table, bigint>;

export async function readExtent(store: Store): Promise<Extent> {
  const rows = await store.query(() => TABLES.map(({ name }) => `SELECT CAST(max(id) AS TEXT) AS id FROM ${name}`));
  const ids = rows.map(([row]) => row?.["id"]);
  return new Map(TABLES.flatMap((table, index) => (ids[index] ? [[table, BigInt(String(ids[index]))]] : [])));
}

// Starting Wrangler takes a second, so a page should be large; but an answer must fit into memory at both ends.
const PAGE_BYTES = 4_000_000;
const PAGE_ROWS = { first: 1_000, most: 20_000 };

/**
 * The lines of the store up to `extent`, in the order of the tables and of their ids; `reached` is for showing progress. The
 * service changes nothing and its ids rise, so these are the same whatever callers add meanwhile.
 */
export async function* readStore(store: Store, extent: Extent): AsyncGenerator<{ lines: string[]; reached: string }> {
  let rows = PAGE_ROWS.first;
  for (const [table, greatest] of extent) {
    for (let next = -(2n ** 63n); next <= greatest; ) {
      // A plain LIMIT, because D1 bills every row that is read. If rows suddenly get larger, a page can be too large and
      // fail, so the next attempt asks for fewer.
      const [page = []] = await store.query((failures) => [
        `SELECT ${lineSql(table)} AS line FROM ${table.name} WHERE id >= ${next} AND id <= ${greatest}
        ORDER BY ${table.name}.id LIMIT ${Math.ceil(rows / 8 ** failures)}`,
      ]);
      const lines = page.map(({ line }) => String(line));
      const last = lines.at(-1);
      if (last === undefined) break;
      const { id } = parseJson(last, ["id"]) as { id: bigint };
      yield { lines, reached: `${table.name} up to id ${id} of ${greatest}` };
      next = id + 1n;
      const average = lines.reduce((sum, line) => sum + line.length, 0) / lines.length;
      rows = Math.min(Math.ceil(PAGE_BYTES / average), PAGE_ROWS.most);
    }
  }
}
