// How backup and restore reach an environment's database: by `wrangler d1 execute`, one way for the local store and for
// those of the account. Rows come as JSON text that SQLite prints, because Wrangler rounds integers beyond 2^53.

import { nameOf } from "../../src/d1/columns.ts";
import { parseJson } from "../../src/values/json.ts";
import { lineSql } from "./lines.ts";
import { applyLocalMigrations } from "../migrations.ts";
import { TABLES, type Table } from "./tables.ts";
import { wrangler } from "../wrangler.ts";

/** Why a command ends without having done its work, in words for who called it. */
export class Failure extends Error {}

export const ENVIRONMENTS = {
  local: ["--local"],
  staging: ["--env", "staging", "--remote"],
  production: ["--env", "production", "--remote"],
};
export type Environment = keyof typeof ENVIRONMENTS;

// A page ends at the first of these. Starting Wrangler costs a second; an answer must fit into memory at both ends.
const PAGE_ROWS = 10_000;
const PAGE_BYTES = 4_000_000;

/** How far each table that is not empty goes: its greatest id. */
export type Extent = Map<Table, bigint>;

/** What the store holds. Throws where it has a table or a column that no backup covers, or lacks one. */
export async function openStore(environment: Environment): Promise<{ rows: number; extent: Extent }> {
  // A fresh clone has no local store yet. Those of the account are brought up to date by a deployment.
  if (environment === "local") await applyLocalMigrations();
  const [columns = [], ...tables] = await query(
    environment,
    `SELECT tables.name || '.' || columns.name AS name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
      WHERE tables.type = 'table' AND tables.name <> 'd1_migrations'
      AND tables.name NOT GLOB '_cf_*' AND tables.name NOT GLOB 'sqlite_*'`,
    ...TABLES.map(({ name }) => `SELECT count(*) AS rows, CAST(max(id) AS TEXT) AS greatest FROM ${name}`),
  );
  const covered = new Set(
    TABLES.flatMap(({ name, columns }) => Object.values(columns).map((c) => `${name}.${nameOf(c)}`)),
  );
  const forgotten = columns.map(({ name }) => String(name)).filter((name) => !covered.has(name));
  if (forgotten.length > 0) {
    throw new Failure(
      `No backup covers ${forgotten.join(", ")}: add it to scripts/backup/tables.ts, or use the version that has it.`,
    );
  }
  const extent: Extent = new Map();
  let rows = 0;
  for (const [index, table] of TABLES.entries()) {
    const { rows: count, greatest } = tables[index]?.[0] ?? {};
    rows += Number(count);
    if (greatest !== null) extent.set(table, BigInt(String(greatest)));
  }
  return { rows, extent };
}

/**
 * The lines of the store up to `extent`, page by page, in the order of the tables and of their ids. As the service
 * changes nothing and its ids rise, these are the same whatever callers add meanwhile.
 */
export async function* readStore(environment: Environment, extent: Extent): AsyncGenerator<string[]> {
  for (const [table, greatest] of extent) {
    let next = -(2n ** 63n);
    while (next <= greatest) {
      const [rows = []] = await query(environment, selectPage(table, next, greatest));
      const lines = rows.map(({ line }) => String(line));
      const last = lines.at(-1);
      if (last === undefined) break;
      yield lines;
      const { id } = parseJson(last, ["id"]) as { id: bigint };
      next = id + 1n;
    }
  }
}

function selectPage(table: Table, least: bigint, greatest: bigint): string {
  return `SELECT line FROM (
    SELECT id, line, sum(octet_length(line)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - octet_length(line) AS before
    FROM (SELECT id, ${lineSql(table)} AS line FROM ${table.name} WHERE id >= ${least} AND id <= ${greatest} ORDER BY id LIMIT ${PAGE_ROWS})
  ) WHERE before < ${PAGE_BYTES} ORDER BY id`;
}

/** Runs a file of SQL, all of it or nothing. */
export async function execute(environment: Environment, file: string): Promise<void> {
  await run(environment, "--file", file);
}

/** The rows of each of the statements. */
async function query(environment: Environment, ...statements: string[]): Promise<Record<string, unknown>[][]> {
  const output = await run(environment, "--command", statements.join(";"));
  const answers: { results: Record<string, unknown>[] }[] = JSON.parse(output);
  return answers.map(({ results }) => results);
}

async function run(environment: Environment, ...what: string[]): Promise<string> {
  const args = ["d1", "execute", "DB", ...ENVIRONMENTS[environment], "--json", ...what];
  const { output } = await wrangler(args, { quiet: true, cutOff: true });
  return output;
}
