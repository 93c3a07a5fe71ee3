// Loads a file into a store: `npm run restore -- <environment> <file>`. D1's import fails for large files and may store only some
// rows, so a file is loaded in parts, and a part can be loaded again: rows that are there already are skipped. So after any failure
// the same part, and after any interruption the same command, is simply run again. At the end everything is read back, which
// finds whatever was in the way. Only the removal of --replace is not repeated blindly, because ids start at 1 again after it: it
// fails unless everything that it would remove is saved.

import { dirname, join } from "node:path";
import { backup } from "./backup.ts";
import { type Connection, checkColumns, readLines } from "./connection.ts";
import { type Input, readInput } from "./input.ts";
import { COVERED_COLUMNS, insertSql, type Line, ROW_JSON, storedLine, valuesSql } from "./lines.ts";
import { command } from "./main.ts";

// Characters of SQL, of up to 3 bytes. Imports of 5 MB have been seen to fail, and starting Wrangler for each takes a second.
const PART_LENGTH = 1_500_000;

/**
 * Returns the line to end with. `replace`: whether to replace what is there if it is not the beginning of the file. `length`:
 * that of a part, in characters. Throws with a message for the operator.
 */
export async function restore(store: Connection, file: string, replace = false, length = PART_LENGTH): Promise<string> {
  const { environment } = store;
  const input = await readInput(file);
  await checkColumns(store);
  const { count, last, other } = await compare(store, input);
  if (other && !replace && count < input.total) {
    throw new Error(`${environment} is not empty, and differs from the file at line ${count + 1}.
A restore fills an empty store, or continues one that did not finish. With --replace, it saves what is there, and replaces it.`);
  }
  const done = `Restored ${environment} from ${file}: ${input.total} lines, read back and identical.`;
  // Without --replace, callers may have added animals after the last line.
  if (count === input.total && !(other && replace)) return done;

  const isUnchanged = other && (await saveContents(store, file, other));
  if (!store.isLocal) {
    console.log(`Callers get 503 while ${environment} is restored. To return to the state before this run:
npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await store.bookmark()}`);
  }
  if (isUnchanged) await removeContents(store, isUnchanged);
  else if (count > 0) console.log(`${environment} already has the first ${count} of ${input.total} lines.`);
  for (const part of partsOf(input.after(isUnchanged ? undefined : last), length)) await store.load(part);
  const { count: found } = await compare(store, input);
  if (found === input.total) return done;
  throw new Error(`Verification failed: ${environment} differs from the file at line ${found + 1}. Something else writes to it.
Keep callers out with a key that nobody has ("Rotate the keys" in docs/OPERATIONS.md), and run the command again with --replace.`);
}

/** Compares rows with lines: how many are equal, the id of the last of them, and the row that follows it, if any. */
async function compare(store: Connection, input: Input) {
  let [count, last]: [number, bigint | undefined] = [0, undefined];
  const rows = readLines(store);
  let { value: other } = await rows.next();
  for (const line of input.after()) {
    if (other?.text !== line.text) break;
    last = line.id;
    count++;
    ({ value: other } = await rows.next());
  }
  return { count, last, other };
}

/** The SQL of imports that store the lines. */
function* partsOf(lines: Iterable<Line>, length: number): Generator<string> {
  let part = "";
  for (const line of lines) {
    part += insertSql(line);
    if (part.length < length) continue;
    yield part;
    part = "";
  }
  if (part) yield part;
}

/**
 * Saves what is there, next to the file. Returns the SQL condition that neither the newest row nor the first one that differs
 * from the file has changed since: a restore that has finished meanwhile may have the same newest row.
 */
async function saveContents(store: Connection, file: string, other: Line): Promise<string> {
  // Read first, so that everything up to it is saved.
  const [newest = ""] = await store.query(`SELECT ${ROW_JSON} FROM pets ORDER BY pets.id DESC LIMIT 1`);
  const time = new Date().toISOString().replaceAll(/[:.]/g, "-");
  console.log(await backup(store, join(dirname(file), `before-${store.environment}-${time}.jsonl`)));
  const isSaved = (row: string, { text }: Line) =>
    `(SELECT ${COVERED_COLUMNS.join(", ")} FROM pets ${row}) IS (${valuesSql(text)})`;
  return `${isSaved("ORDER BY id DESC LIMIT 1", storedLine(newest))} AND ${isSaved(`WHERE id = ${other.id}`, other)}`;
}

/** Removes everything, unless something else has written since it was saved. It can be repeated: it then finds nothing. */
async function removeContents({ environment, query, load }: Connection, isUnchanged: string): Promise<void> {
  const isRemovable = `(NOT EXISTS (SELECT 1 FROM pets) OR ${isUnchanged})`;
  const [found] = await query(`SELECT 1 WHERE ${isRemovable}`);
  if (!found) {
    throw new Error(`Something else has written to ${environment} since it was saved, and the restore stopped.
Run it again to save and replace what is there now. To keep callers out meanwhile, see "Rotate the keys" in docs/OPERATIONS.md.`);
  }
  // json() fails for what is not JSON, which ends an import. A DELETE without a condition truncates the table: 2,000,000 rows
  // take 56 ms.
  await load(`SELECT json('The store has changed.') WHERE NOT ${isRemovable};\nDELETE FROM pets;\n`);
}

if (import.meta.main) await command("restore", restore, "It did not finish. Run the same command again.", "--replace");
