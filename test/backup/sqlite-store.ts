// Databases in this process, with the project's migrations and D1's limit of a string. Backup and restore reach them
// through a replacement for Wrangler's commands, so that a test starts no processes, and can break one command at a
// chosen moment.

import { readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { insertSql } from "../../scripts/backup/rows.ts";
import { openStore } from "../../scripts/backup/wrangler-store.ts";
import { WranglerFailed, type wrangler } from "../../scripts/wrangler.ts";

export type Database = Awaited<ReturnType<typeof openDatabase>>;

/** What a command of Wrangler throws, with what it printed. */
export const failure = (output: string) => new WranglerFailed("d1 execute", output);

export async function openDatabase() {
  const sqlite = new DatabaseSync(":memory:", { limits: { length: 2_000_000 } });
  for (const file of readdirSync("migrations").sort()) sqlite.exec(readFileSync(`migrations/${file}`, "utf8"));
  const apply = (sql: string) => {
    try {
      sqlite.exec(`BEGIN;${sql}COMMIT`);
    } catch (cause) {
      sqlite.exec("ROLLBACK");
      // D1 does not say what SQLite said.
      throw Object.assign(failure('{"D1_RESET_DO":true}'), { cause });
    }
  };
  const run: typeof wrangler = async (args) => {
    database.onCommand();
    // Longer than any, unless it has data, which every user of the machine could see.
    if (args.join(" ").length > 1_000) throw new Error("E2BIG");
    const sql = args.at(-1) ?? "";
    if (args.includes("time-travel")) return '{"bookmark":"00000000-00000001"}';
    if (args.includes("deployments")) {
      if (!database.serving) throw failure("This Worker does not exist on your account. [code: 10007]");
      return JSON.stringify({ versions: database.serving.map((_, version_id) => ({ version_id })) });
    }
    if (args.includes("versions")) {
      const bindings = database.serving?.[Number(args[2])]?.map((name) => ({ name }));
      return JSON.stringify({ resources: { bindings } });
    }
    if (args.includes("--file")) {
      const script = readFileSync(sql, "utf8");
      database.loads.push(script);
      if (script.split(";\n").some((statement) => Buffer.byteLength(statement) > 32_000))
        throw new Error("SQLITE_NOMEM");
      database.onLoad(apply, script);
      return "[]";
    }
    const output = JSON.stringify([{ results: sqlite.prepare(sql).all() }]);
    database.queries.push(sql);
    return output;
  };
  const database = {
    sqlite,
    /** Adds animals as another program would. */
    add: (...lines: string[]) => sqlite.exec([...insertSql(lines)].join("")),
    /** Adds animals with the ids from 1 on. `name`: SQL. */
    addMany: (count: number, name: string) =>
      sqlite.exec(`WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
        INSERT INTO pets (id, name, category_id, status) SELECT id, ${name}, 1, 'sold' FROM ids`),
    /** As a different process opens it. */
    openAgain: () => openStore("staging", run, 1),
    /** The SQL of every file that was loaded, or that should have been. */
    loads: [] as string[],
    /** Every query that did not fail. */
    queries: [] as string[],
    /** The names of the secrets of each version that serves. Undefined if there is no Worker. */
    serving: [["API_KEY", "MAINTENANCE"]] as string[][] | undefined,
    /** Replaces the loading of a file. */
    onLoad: (apply: (sql: string) => void, sql: string): void => apply(sql),
    /** Is called before every command. */
    onCommand: (): unknown => undefined,
  };
  return Object.assign(database, { store: await database.openAgain() });
}
