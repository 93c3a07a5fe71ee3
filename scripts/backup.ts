// Saves the animals of an environment as SQL: `npm run backup -- <environment> <file>`. Each line adds one animal
// unless it is there, so the file can be loaded (load.ts), again and again. The service stays open: the file has the
// animals that were there at the start, because ids increase.

import { lstatSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { parseArguments } from "./environment.ts";
import { prove, wordsOf } from "./prove.ts";
import { removeAtExit } from "./remove-at-exit.ts";
import { queryRows } from "./wrangler.ts";

// The longest animals have some 9 KB, and D1 returns at most 50 MB. Each query starts Wrangler, which takes a second.
export const ROWS_PER_QUERY = 4000;

type Row = Record<string, unknown>;

/**
 * The text of a backup: the environment, a line for each animal, in the order of ids, such as
 * `INSERT INTO pets (id, name, …) VALUES (1, 'Rex', …) ON CONFLICT DO NOTHING;`, and how many animals it has: a
 * statement, because Wrangler refuses a file of comments alone. A new column is covered by itself.
 */
export function* backupLines(environment: string, query: (sql: string) => Row[]): Generator<string> {
  const table = query("SELECT name, (SELECT max(id) FROM pets) AS last FROM pragma_table_info('pets')");
  const columns = table.map(({ name }) => String(name));
  yield `-- Animals of ${environment}\n`;
  let [count, after, end] = [0, "0", String(table[0]?.["last"] ?? 0)];
  while (after !== end) {
    const page = query(`SELECT ${columns.map(literalOf).join(", ")} FROM pets WHERE id > ${after} AND id <= ${end}
      ORDER BY pets.id LIMIT ${ROWS_PER_QUERY}`);
    if (page.length === 0) throw new Error("Animals were removed while they were saved: run this again.");
    for (const row of page) {
      const values = Object.values(row).join(", ");
      yield `INSERT INTO pets (${columns.join(", ")}) VALUES (${values}) ON CONFLICT DO NOTHING;\n`;
    }
    count += page.length;
    after = String(page.at(-1)?.["id"]);
    console.error(`${wordsOf({ animals: count, last: after })} of ${end}`);
  }
  yield `SELECT ${count} AS animals;\n`;
}

/** Selects the SQL of a column's value, such as `'Rex'` or, for some texts, `CAST(X'52650A78' AS TEXT)`. */
function literalOf(column: string): string {
  const needsHex = [
    // A control character, such as a line break, or one that a terminal obeys (U+007F to U+009F).
    `${column} GLOB '*[^ -~' || char(0xa0) || '-' || char(0x10ffff) || ']*'`,
    // U+0000, which ends a text for GLOB and quote().
    `instr(CAST(${column} AS BLOB), x'00')`,
    // Wrangler removes these words from files, and rejects a command with them: the underscore matches a space.
    `${column} LIKE '%BEGIN_TRANSACTION%'`,
  ];
  const hex = `format('CAST(%s AS TEXT)', quote(CAST(${column} AS BLOB)))`;
  return `iif(typeof(${column}) = 'text' AND (${needsHex.join(" OR ")}), ${hex}, quote(${column})) AS ${column}`;
}

if (import.meta.main) {
  try {
    const { environment, file } = parseArguments("backup");
    if (lstatSync(file, { throwIfNoEntry: false })) throw new Error(`${file} already exists: take another name.`);
    // Only its owner can read it. It takes its name when it is complete and proven.
    const partial = `${file}.${process.pid}.partial`;
    removeAtExit(partial);
    const lines = backupLines(environment, (sql) => queryRows(environment, sql));
    await writeFile(partial, lines, { flag: "wx", mode: 0o600 });
    const proof = await prove(partial, environment).catch(async ({ message }: Error) => {
      await rename(partial, `${file}.unproven`);
      throw new Error(`${message}\nThe backup is not proven, and is kept as ${file}.unproven.`);
    });
    // Fails if the name is taken by now.
    await writeFile(file, "", { flag: "wx" });
    await rename(partial, file);
    console.log(`Saved: ${file} has ${wordsOf(proof)}`);
  } catch (failure) {
    console.error((failure as Error).message);
    process.exitCode = 1;
  }
}
