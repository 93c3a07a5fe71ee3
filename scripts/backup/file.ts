// A file of a backup, or of animals from elsewhere, in the format of lines.ts. It is read as a stream, once for each
// purpose, because there may be too many lines for memory. A new file appears when it is complete, and never overwrites
// a file or follows a link.

import { randomUUID } from "node:crypto";
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { printJson } from "../../src/values/json.ts";
import { checkRow, LINE_BYTES, type Row } from "./lines.ts";

const MOST_FAULTS = 10;

/** A line as a backup writes it, and what it says. A line without an id has the next one. */
export interface Line {
  text: string;
  row: Row & { id: bigint };
}

/**
 * Checks a file as a whole. Returns the number of its lines, the last id, and the Idempotency-Keys. Throws an Error
 * that names the invalid lines by their numbers.
 */
export async function checkFile(file: string) {
  const keys = openKeys();
  const faults: string[] = [];
  let [total, last] = [0, 0n];
  for await (const { fault, row } of checkedLines(file)) {
    total++;
    const problem = fault || (row && !keys.add(row) ? "has the idempotencyKey of an earlier line of its caller" : "");
    if (problem && faults.push(`line ${total}: ${problem}`) === MOST_FAULTS) break;
    last = row?.id ?? last;
  }
  if (total === 0) throw new Error(`${file} is empty. Name a file with at least one animal.`);
  if (faults.length === 0) return { total, last, keys };
  const title = `${file} has invalid lines. The first ones are:`;
  throw new Error([title, ...faults, "Correct the file, and run the same command again."].join("\n"));
}

/** The lines of a file that was checked. Throws if it has changed since. */
export async function* readLines(file: string): AsyncGenerator<Line> {
  for await (const { fault, row } of checkedLines(file)) {
    if (!row) throw new Error(`${file} has changed: a line ${fault}.`);
    yield { text: printJson(row), row };
  }
}

/** The row of each line, or what is wrong with it. */
async function* checkedLines(file: string): AsyncGenerator<{ fault?: string; row?: Line["row"] }> {
  let last = 0n;
  let haveIds: boolean | undefined;
  for await (const bytes of bytesOf(file)) {
    const checked = checkRow(bytes);
    if (typeof checked === "string") {
      yield { fault: checked };
      continue;
    }
    const { id: written, ...others } = checked;
    haveIds ??= written !== undefined;
    const id = written ?? last + 1n;
    if (haveIds !== (written !== undefined)) yield { fault: "either all lines must have an id, or none" };
    else if (id <= last) yield { fault: `id must be greater than ${last}, the id of an earlier line` };
    else yield { row: { id, ...others } };
    if (id > last) last = id;
  }
}

/** Not readline, because it also ends a line at U+2028, which a name can contain. Stops in a line that is too long. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  const status = statSync(file, { throwIfNoEntry: false });
  if (!status) throw new Error(`${file} does not exist.`);
  // A named pipe would wait for a writer, and could not be read twice.
  if (!status.isFile()) throw new Error(`${file} is not a file.`);
  let rest = "";
  for await (const chunk of createReadStream(file, "latin1")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.map((line) => Buffer.from(line, "latin1"));
    if (rest.length > LINE_BYTES) break;
  }
  if (rest !== "") yield Buffer.from(rest, "latin1");
}

/** The Idempotency-Keys of rows, each with its caller. */
function openKeys() {
  // Without a name, SQLite keeps what does not fit into memory in a temporary file, and deletes that itself.
  const database = new DatabaseSync("");
  database.exec("CREATE TABLE keys (caller TEXT, key TEXT, PRIMARY KEY (caller, key)) WITHOUT ROWID; BEGIN");
  const insert = database.prepare("INSERT OR IGNORE INTO keys VALUES (?, ?)");
  const select = database.prepare("SELECT 1 FROM keys WHERE caller = ? AND key = ?");
  return {
    /** Whether the key of the row, if it has one, is new. */
    add: ({ createdBy = "", idempotencyKey: key }: Row) =>
      key === undefined || insert.run(createdBy, key).changes === 1,
    has: ({ createdBy = "", idempotencyKey: key }: Row) =>
      key !== undefined && select.get(createdBy, key) !== undefined,
  };
}

/** Writes lines to a new file, which only its owner can read, and returns their number. */
export async function saveFile(file: string, lines: AsyncIterable<string>): Promise<number> {
  if (existsSync(file)) throw new Error(`${file} already exists, and is never overwritten. Name a different file.`);
  if (!existsSync(dirname(file))) throw new Error(`The folder ${dirname(file)} does not exist.`);
  const partial = `${file}.${randomUUID()}.partial`;
  const output = openSync(partial, "wx", 0o600);
  process.once("exit", () => rmSync(partial, { force: true }));
  let total = 0;
  for await (const line of lines) {
    writeFileSync(output, `${line}\n`);
    total++;
  }
  fsyncSync(output);
  closeSync(output);
  // An empty file reserves the name, and is then replaced: not every file system has hard links. Throws if the name is
  // taken. SIGKILL can leave the empty file.
  closeSync(openSync(file, "wx"));
  renameSync(partial, file);
  return total;
}
