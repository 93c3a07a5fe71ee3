// Saves the animals of an environment as SQL: `npm run backup -- <environment> <file>`. Each line adds one animal
// unless it is there, so Wrangler can load the file, again and again. The service stays open: the file has the animals
// that were there at the start, because ids increase and rows never change.

import { lstatSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { ENVIRONMENTS } from "./environment.ts";
import { wrangler } from "./wrangler.ts";

// Rows, of which the longest have some 10 KB. Starting Wrangler for each page takes a second.
const PAGE = 1000;

type Row = Record<string, unknown>;

/** A line for each animal, in the order of ids. A new column is covered by itself. `query` runs a SELECT. */
export function* insertStatements(query: (sql: string) => Row[]): Generator<string> {
  const table = query("SELECT name, (SELECT max(id) FROM pets) AS last FROM pragma_table_info('pets')");
  const columns = table.map(({ name }) => String(name));
  const values = columns.map(literal).join(" || ', ' || ");
  const line = `'INSERT INTO pets (${columns.join(", ")}) VALUES (' || ${values} || ') ON CONFLICT DO NOTHING;'`;
  const last = table[0]?.["last"];
  let after: unknown = 0;
  while (after !== undefined && after !== last) {
    const rows = query(`SELECT id, ${line} AS line FROM pets WHERE id > ${after} AND id <= ${last}
      ORDER BY pets.id LIMIT ${PAGE}`);
    for (const row of rows) yield `${row["line"]}\n`;
    after = rows.at(-1)?.["id"];
  }
}

/**
 * The SQL that prints the literal of a column's value, exactly. quote() does that, except for a text with a line break,
 * with U+0000, where it ends for SQLite, or with BEGIN TRANSACTION, which Wrangler changes in files. These are printed
 * as hexadecimal digits. (The pattern has an underscore, because Wrangler rejects a command with these words.)
 */
const literal = (column: string) => `iif(typeof(${column}) = 'text'
    AND (${column} GLOB '*[^ -' || char(1114111) || ']*' OR instr(CAST(${column} AS BLOB), x'00')
      OR ${column} LIKE '%BEGIN_TRANSACTION%'),
    'CAST(x''' || hex(${column}) || ''' AS TEXT)', quote(${column}))`;

/** Writes a file that only its owner can read, and that appears when it is complete. Throws if it exists. */
export async function writeLines(file: string, lines: Iterable<string>): Promise<void> {
  const partial = `${file}.${process.pid}.partial`;
  if (lstatSync(file, { throwIfNoEntry: false })) throw new Error(`${file} already exists.`);
  try {
    await writeFile(partial, lines, { flag: "wx", mode: 0o600 });
    // Takes the name, unless it is taken by now.
    await writeFile(file, "", { flag: "wx" });
    await rename(partial, file);
  } finally {
    await rm(partial, { force: true });
  }
}

if (import.meta.main) {
  const [environment = "", file = ""] = process.argv.slice(2);
  const names = ["local", ...ENVIRONMENTS];
  const flags = environment === "local" ? ["--local"] : ["--env", environment, "--remote"];
  const query = (sql: string): Row[] =>
    JSON.parse(wrangler(["d1", "execute", "DB", ...flags, "--json", "--command", sql], { output: "pipe" }))[0].results;
  try {
    if (!names.includes(environment) || !file) throw new Error(`usage: npm run backup -- <${names.join("|")}> <file>`);
    await writeLines(file, insertStatements(query));
    console.log(`Saved ${environment} in ${file}.`);
  } catch (failure) {
    console.error((failure as Error).message);
    process.exitCode = 1;
  }
}
