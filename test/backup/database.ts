// Databases in this process, with the project's migrations and D1's limit of a string. Backup and restore reach them through a
// replacement for Wrangler's commands, so that a test starts no processes, and can break one command at a chosen moment.

import { readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { type Connection, connect } from "../../scripts/backup/connection.ts";
import { WranglerFailed, type wrangler } from "../../scripts/wrangler.ts";

export interface Database {
  /** As backup and restore use it. */
  store: Connection;
  /** A second one, as for a different process. */
  connectAgain: () => Promise<Connection>;
  /** As other programs use it. */
  sqlite: DatabaseSync;
  /** The SQL of every file that was loaded, or that should have been. */
  loads: string[];
  /** Every query, and the text that it printed if it did not fail. */
  queries: { sql: string; output?: string }[];
  /** Replaces the loading of a file. */
  onLoad: (apply: (sql: string) => void, sql: string) => void;
  /** Is called before every query. */
  onQuery: () => unknown;
  /** Is called before every command. */
  onCommand: () => void | Promise<void>;
}

/** What a command of Wrangler throws, with what it printed. */
export const failure = (output: string) => new WranglerFailed("d1 execute", output);

/** `migrations`: how many of them are applied. */
export async function openDatabase(migrations = Number.POSITIVE_INFINITY): Promise<Database> {
  const sqlite = new DatabaseSync(":memory:", { limits: { length: 2_000_000 } });
  for (const file of readdirSync("migrations").sort().slice(0, migrations)) {
    sqlite.exec(readFileSync(`migrations/${file}`, "utf8"));
  }
  const apply = (sql: string) => {
    try {
      sqlite.exec(`BEGIN;${sql}COMMIT`);
    } catch (cause) {
      sqlite.exec("ROLLBACK");
      // D1 does not say what SQLite said.
      throw Object.assign(failure('{"D1_RESET_DO":true}'), { cause });
    }
  };
  const run: typeof wrangler = async ([, command, ...args]) => {
    await database.onCommand();
    if (command === "time-travel") return '{"bookmark":"00000000-00000001"}';
    const sql = args.at(-1) ?? "";
    if (args.includes("--file")) {
      const script = readFileSync(sql, "utf8");
      database.loads.push(script);
      database.onLoad(apply, script);
      return "[]";
    }
    database.onQuery();
    const query: Database["queries"][number] = { sql };
    database.queries.push(query);
    query.output = JSON.stringify([{ results: sqlite.prepare(sql).all() }]);
    return query.output;
  };
  const connectAgain = () => connect("staging", run, 1);
  const database: Database = {
    store: await connectAgain(),
    connectAgain,
    sqlite,
    loads: [],
    queries: [],
    onLoad: (apply, sql) => apply(sql),
    onQuery: () => {},
    onCommand: () => {},
  };
  return database;
}
