// A file of a backup, or of animals from elsewhere, in the format of lines.ts. It is read and checked once. Its lines
// then wait in a temporary database, because there may be too many for memory.

import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { printJson } from "../../src/values/json.ts";
import { checkLine, LINE_BYTES } from "./lines.ts";

const MOST_FAULTS = 10;

/**
 * Reads each file into a table of its name: the lines, and what they are compared by. Returns the database. Throws an
 * Error that names the invalid lines by their numbers.
 */
export async function readFiles(files: Record<string, string>): Promise<DatabaseSync> {
  // Without a name, SQLite keeps it in a file that nobody else can open, and deletes that itself.
  const database = new DatabaseSync("", { readBigInts: true });
  database.exec("BEGIN");
  for (const [table, file] of Object.entries(files)) await readFile(database, table, file);
  return database;
}

async function readFile(database: DatabaseSync, table: string, file: string): Promise<void> {
  database.exec(`CREATE TABLE ${table} (id INTEGER PRIMARY KEY, caller, time, key, line, UNIQUE (caller, key))`);
  const insert = database.prepare(`INSERT OR IGNORE INTO ${table} VALUES (?, ?, ?, ?, ?)`);
  const faults: string[] = [];
  let [number, last] = [0, 0n];
  let haveIds: boolean | undefined;
  for await (const bytes of split(file)) {
    number++;
    const fault = add(bytes);
    if (fault && faults.push(`line ${number}: ${fault}`) === MOST_FAULTS) break;
  }
  if (faults.length === 0) return;
  const title = `${file} has invalid lines. The first ones are:`;
  throw new Error([title, ...faults, "Correct the file, and run the same command again."].join("\n"));

  /** Stores a line. Returns what is wrong with it, if anything. */
  function add(bytes: Uint8Array): string {
    const row = checkLine(bytes);
    if (typeof row === "string") return row;
    const { id = last + 1n, createdBy = null, createdAt = null, idempotencyKey = null } = row;
    haveIds ??= row.id !== undefined;
    if (haveIds !== (row.id !== undefined)) return "either all lines must have an id, or none";
    if (id <= last) return `id must be greater than ${last}, the id of an earlier line`;
    last = id;
    const { changes } = insert.run(id, createdBy, createdAt, idempotencyKey, printJson({ id, ...row }));
    return changes ? "" : "has the idempotencyKey of an earlier line with the same createdBy";
  }
}

/** The first column of what a SELECT returns. */
export function* select(database: DatabaseSync, sql: string): Generator<string> {
  for (const row of database.prepare(sql).iterate()) yield String(Object.values(row)[0]);
}

/** The bytes of each line. Stops at a line that is too long, because one line can have hundreds of megabytes. */
async function* split(file: string): AsyncGenerator<Uint8Array> {
  const status = fs.statSync(file, { throwIfNoEntry: false });
  if (!status) throw new Error(`${file} does not exist.`);
  // A named pipe would wait for a writer.
  if (!status.isFile()) throw new Error(`${file} is not a file.`);
  let rest = "";
  // As latin1, each byte is a character, so a chunk can end anywhere.
  for await (const chunk of fs.createReadStream(file, "latin1")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield Buffer.from(line, "latin1");
    if (rest.length > LINE_BYTES) break;
  }
  if (rest) yield Buffer.from(rest, "latin1");
}

/**
 * Writes lines to a new file, which only its owner can read, and which appears when it is complete. Returns their
 * number. Never overwrites a file or follows a link.
 */
export async function createFile(file: string, lines: AsyncIterable<string> | Iterable<string>): Promise<number> {
  const status = fs.lstatSync(file, { throwIfNoEntry: false });
  if (status) throw new Error(`${file} already exists, and nothing is ever overwritten. Name a different file.`);
  if (!fs.existsSync(dirname(file))) throw new Error(`The folder ${dirname(file)} does not exist.`);
  const partial = `${file}.${randomUUID()}.partial`;
  const output = fs.openSync(partial, "wx", 0o600);
  process.once("exit", () => fs.rmSync(partial, { force: true }));
  let total = 0;
  for await (const line of lines) {
    fs.writeFileSync(output, `${line}\n`);
    total++;
  }
  fs.fsyncSync(output);
  fs.closeSync(output);
  // An empty file reserves the name, and is then replaced: not every file system has hard links. Throws if the name is
  // taken. SIGKILL can leave the empty file.
  fs.closeSync(fs.openSync(file, "wx"));
  fs.renameSync(partial, file);
  return total;
}
