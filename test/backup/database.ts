// Databases in this process, with the project's migrations. Backup and restore reach them through a replacement for Wrangler's
// commands, so that a test starts no processes, and can break one command at a chosen moment.

import { readdirSync, readFileSync } from "node:fs";
import { Miniflare } from "miniflare";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";
import { type Connection, connect } from "../../scripts/backup/connection.ts";
import { WranglerFailed, type wrangler } from "../../scripts/wrangler.ts";

export const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";

const MOST = 50;

const NAMES = Array.from({ length: MOST }, (_, index) => `database-${index}`);

export interface Database {
  /** As backup and restore use it. */
  store: Connection;
  /** Runs SQL, and gives the rows of its last statement. */
  sql(sql: string): Promise<Record<string, unknown>[]>;
  /** The SQL of every file that was loaded, or that should have been. */
  loads: string[];
  /** The rows that all commands read so far. */
  rowsRead: number;
  /** Replaces the loading of a file: `apply` loads it. */
  onLoad: (apply: (sql?: string) => Promise<void>, sql: string) => Promise<void>;
  /** Is called before every query. */
  onQuery: (sql: string) => void;
}

/** What a command of Wrangler throws, with what it printed. */
export const failure = (output: string) => new WranglerFailed("d1 execute", output);

export class Databases implements AsyncDisposable {
  readonly #runtime = new Miniflare({
    handleStructuredLogs: () => {},
    workers: [
      {
        config: {
          name: "hub",
          compatibilityDate: "2026-10-23",
          manifest: {
            mainModule: "hub.js",
            modules: { "hub.js": { type: "esm", contents: "export default { fetch: () => new Response() }" } },
          },
          env: Object.fromEntries(NAMES.map((name) => [name, { type: "d1" as const, id: name }])),
        },
      },
    ],
  });
  #opened = 0;

  /** `migrations`: how many of them are applied. */
  async open(migrations = Number.POSITIVE_INFINITY): Promise<Database> {
    const db = await this.#runtime.getD1Database(NAMES[this.#opened++] ?? "", "hub");
    const execute = async (sql: string) => {
      const results = await db.batch<Record<string, unknown>>(splitSqlQuery(sql).map((part) => db.prepare(part)));
      for (const { meta } of results) database.rowsRead += meta.rows_read;
      return results;
    };
    const apply = async (sql: string) => {
      await execute(sql).catch(() => {
        throw failure('{"D1_RESET_DO":true}');
      });
    };
    const run: typeof wrangler = async ([, command, ...args]) => {
      if (command === "time-travel") return JSON.stringify({ bookmark: BOOKMARK });
      if (args.includes("--file")) {
        const sql = readFileSync(args.at(-1) ?? "", "utf8");
        database.loads.push(sql);
        await database.onLoad((other = sql) => apply(other), sql);
        return "[]";
      }
      const asked = args.at(-1) ?? "";
      database.onQuery(asked);
      const results = await execute(asked).catch((error) => {
        throw failure(String(error));
      });
      return JSON.stringify(results.map(({ results }) => ({ results })));
    };
    const database: Database = {
      store: await connect("staging", run, 1),
      sql: async (sql) => (await execute(sql)).at(-1)?.results ?? [],
      loads: [],
      rowsRead: 0,
      onLoad: (apply) => apply(),
      onQuery: () => {},
    };
    for (const file of readdirSync("migrations").sort().slice(0, migrations)) {
      await execute(readFileSync(`migrations/${file}`, "utf8"));
    }
    return database;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#runtime.dispose();
  }
}
