// Loads a file into a store: `npm run restore -- <environment> <file>`. D1's import fails for large files and may store only some
// rows, so a file is loaded in parts. Each starts with a guard that fails if anything was added since the part before (or since
// the backup, if it removes what is there). After any failure, what is stored decides how to continue, in the same run or in the
// next one. The smoke test's animal at the end of a store is not data, because the next deployment adds it: a part removes it.

import { dirname, join } from "node:path";
import { printJson } from "../../src/values/json.ts";
import { SMOKE_TEST } from "../environment.ts";
import { TRIES, WranglerFailed } from "../wrangler.ts";
import { backup } from "./backup.ts";
import { type Connection, checkColumns, readLines } from "./connection.ts";
import { type Input, readInput } from "./input.ts";
import { COVERED_COLUMNS, Failure, insertSql, type Line, ROW_JSON, storedLine, valuesSql } from "./lines.ts";
import { command } from "./main.ts";

// Of SQL. Imports of 5 MB have been seen to fail, and starting Wrangler for each takes a second.
const PART_BYTES = 2_500_000;

/** The lines of a file that the store has: how many, and the last. `replaced`: the last of those that the next part removes. */
type Stored = { count: number; last?: Line | undefined; replaced?: Line | undefined };

/**
 * Returns the line to end with. `replace`: whether to replace what is there if it is not the beginning of the file. `bytes`:
 * the size of an import. Throws Failure and WranglerFailed.
 */
export async function restore(store: Connection, file: string, replace = false, bytes = PART_BYTES): Promise<string> {
  const { environment } = store;
  const input = await readInput(file);
  await checkColumns(store);
  const { other, ...stored } = await compare(store, input, { count: 0 });
  if (other && !replace) {
    throw new Failure(`${environment} is not empty, and differs from the file at line ${stored.count + 1}.
A restore fills an empty store, or continues one that did not finish. With --replace, it saves what is there, and replaces it.`);
  }
  const start = other ? await saveContents(store, file) : stored;
  if (start.count > 0) console.log(`${environment} already has the first ${start.count} of ${input.total} lines.`);
  if (start.count < input.total) {
    if (!store.isLocal) {
      console.log(`Callers get 503 while ${environment} is restored. To return to the state before this run:
npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await store.bookmark()}`);
    }
    await loadRest(store, input, start, bytes);
    // Callers may have added animals since, so only the lines count.
    const { count } = await compare(store, input, { count: 0 });
    if (count < input.total) throw new Failure(`Verification failed: ${environment} differs at line ${count + 1}.`);
  }
  return `Restored ${environment} from ${file}: ${input.total} lines, read back and identical.`;
}

/** Saves what is there, next to the file. */
async function saveContents(store: Connection, file: string): Promise<Stored> {
  // Read first, so that everything up to it is saved.
  const [newest] = await store.query(newestSql(ROW_JSON));
  const time = new Date().toISOString().replaceAll(/[:.]/g, "-");
  console.log(await backup(store, join(dirname(file), `before-${store.environment}-${time}.jsonl`)));
  return { count: 0, replaced: newest ? storedLine(newest) : undefined };
}

/** Stores the lines that are missing, each exactly once, even if imports fail after they stored some or all of theirs. */
async function loadRest(store: Connection, input: Input, stored: Stored, bytes: number): Promise<void> {
  let failures = 0;
  while (stored.count < input.total) {
    const part = takePart(input, stored, bytes);
    try {
      await store.load(guardSql(stored) + part.sql);
      stored = part.stored;
      failures = 0;
    } catch (failure) {
      if (!(failure instanceof WranglerFailed)) throw failure;
      const { other, ...found } = await compare(store, input, stored);
      if (!other) stored = found;
      else if ((await store.query(`SELECT ${endsWith(stored.replaced)}`))[0] !== "1") {
        throw new Failure(`Something else has added animals to ${store.environment} during the restore, which stopped.
To save and replace what is there now, run it again with --replace. To keep callers out meanwhile, see docs/OPERATIONS.md.`);
      }
      if (++failures === TRIES) throw failure;
      console.log(`An import failed. Continuing after line ${stored.count}.`);
      await store.wait(failures);
    }
  }
}

/** Compares rows with lines after those that are known. `other`: the row that differs from the next line. */
async function compare(store: Connection, input: Input, known: Stored): Promise<Stored & { other: Line | undefined }> {
  let { count, last } = known;
  const rows = readLines(store, last?.id);
  let { value: other } = await rows.next();
  for (const line of input.after(last?.id)) {
    if (other?.text !== line.text) break;
    last = line;
    count++;
    ({ value: other } = await rows.next());
  }
  if (other && isSmokeTest(other)) ({ value: other } = await rows.next());
  return { count, last, other };
}

/** The next lines, as many as fit in an import: the SQL that stores them, and what is stored then. */
function takePart(input: Input, { count, last }: Stored, most: number): { sql: string; stored: Stored } {
  const statements: string[] = [];
  let bytes = 0;
  for (const line of input.after(last?.id)) {
    const statement = insertSql(line);
    bytes += Buffer.byteLength(statement);
    if (statements.length > 0 && bytes > most) break;
    statements.push(statement);
    last = line;
  }
  return { sql: statements.join(""), stored: { count: count + statements.length, last } };
}

/** Removes what the part replaces. Fails if anything was added: json() accepts only JSON. */
function guardSql({ last, replaced }: Stored): string {
  // DELETE without a condition truncates the table: 2,000,000 rows take 56 ms.
  return `SELECT json('The store has changed.') WHERE NOT ${endsWith(replaced ?? last)};
DELETE FROM pets${replaced ? "" : ` WHERE ${isSmokeTestAfter(last)}`};\n`;
}

/** The SQL condition that nothing comes after this line, or that the store is empty, apart from the smoke test's animal. */
const endsWith = (last?: Line) =>
  `((${newestSql(COVERED_COLUMNS.join(", "), last)}) IS (${valuesSql(last?.text ?? "{}")}))`;

const newestSql = (columns: string, last?: Line) =>
  `SELECT ${columns} FROM pets WHERE NOT (${isSmokeTestAfter(last)}) ORDER BY id DESC LIMIT 1`;

// Compared whole, because a caller can store a different animal under the same key.
const SMOKE_TEST_JSON = printJson({ ...SMOKE_TEST.pet, idempotencyKey: SMOKE_TEST.key });
const isSmokeTest = ({ id, text }: Line) => text === SMOKE_TEST_JSON.replace("{", `{"id":${id},`);
const isSmokeTestAfter = (last?: Line) =>
  `id > ${last?.id ?? 0} AND json_remove(${ROW_JSON}, '$.id') = '${SMOKE_TEST_JSON}'`;

if (import.meta.main) await command("restore", restore, "It did not finish. Run the same command again.", "--replace");
