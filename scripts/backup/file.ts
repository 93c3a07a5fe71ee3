// A file of a backup, or of animals from elsewhere, in the format of lines.ts. There may be too many lines for memory,
// so a file is read as a stream: once to check it as a whole, and again for each use.

import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkLine, LINE_BYTES, type Row } from "./lines.ts";

const MOST_FAULTS = 10;

/**
 * Returns the last id, which is 0 if the file is empty, and the Idempotency-Keys. Throws an Error that names the
 * invalid lines by their numbers.
 */
export async function checkFile(file: string): Promise<{ last: bigint; keys: Keys }> {
  const keys = openKeys();
  const faults: string[] = [];
  let [number, last] = [0, 0n];
  for await (const row of parse(file)) {
    number++;
    const fault = typeof row === "string" ? row : keys.add(row);
    if (fault && faults.push(`line ${number}: ${fault}`) === MOST_FAULTS) break;
    if (typeof row !== "string") last = row.id;
  }
  if (faults.length === 0) return { last, keys };
  const title = `${file} has invalid lines. The first ones are:`;
  throw new Error([title, ...faults, "Correct the file, and run the same command again."].join("\n"));
}

/** The rows of a file that was checked. Throws if it has invalid lines now. */
export async function* readRows(file: string): AsyncGenerator<Row, undefined> {
  for await (const row of parse(file)) {
    if (typeof row === "string") throw new Error(`${file} has changed: a line ${row}. Run the same command again.`);
    yield row;
  }
}

/** The row of each line, or what is wrong with it. */
async function* parse(file: string): AsyncGenerator<Row | string> {
  let last = 0n;
  let haveIds: boolean | undefined;
  for await (const line of split(file)) {
    const checked = checkLine(line);
    if (typeof checked === "string") {
      yield checked;
      continue;
    }
    const { id = last + 1n, ...others } = checked;
    haveIds ??= checked.id !== undefined;
    if (haveIds !== (checked.id !== undefined)) yield "either all lines must have an id, or none";
    else if (id <= last) yield `id must be greater than ${last}, the id of an earlier line`;
    else {
      yield { id, ...others };
      last = id;
    }
  }
}

/** Not readline, because it also ends a line at U+2028, which a name can contain. Stops in a line that is too long. */
async function* split(file: string): AsyncGenerator<Uint8Array> {
  const status = fs.statSync(file, { throwIfNoEntry: false });
  if (!status) throw new Error(`${file} does not exist.`);
  // A named pipe would wait for a writer, and could not be read twice.
  if (!status.isFile()) throw new Error(`${file} is not a file.`);
  let rest = "";
  for await (const chunk of fs.createReadStream(file, "latin1")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.map((line) => Buffer.from(line, "latin1"));
    if (rest.length > LINE_BYTES) break;
  }
  if (rest !== "") yield Buffer.from(rest, "latin1");
}

export type Keys = ReturnType<typeof openKeys>;

/** The Idempotency-Keys of rows. Each caller has keys of its own. */
function openKeys() {
  // Without a name, SQLite keeps what does not fit into memory in a temporary file, and deletes that itself.
  const database = new DatabaseSync("", { readBigInts: true });
  database.exec("CREATE TABLE keys (caller, key, id, PRIMARY KEY (caller, key)) WITHOUT ROWID; BEGIN");
  const insert = database.prepare("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)");
  const select = database.prepare("SELECT id FROM keys WHERE caller = ? AND key = ?");
  return {
    /** Returns what is wrong, if an earlier row has the key of this one. */
    add({ id, createdBy, idempotencyKey }: Row): string {
      if (!createdBy || !idempotencyKey || insert.run(createdBy, idempotencyKey, id).changes) return "";
      return "has the idempotencyKey of an earlier line with the same createdBy";
    },
    /** The id of the row that has the key of this one. */
    ownerOf({ createdBy, idempotencyKey }: Row): bigint | undefined {
      const found = createdBy && idempotencyKey ? select.get(createdBy, idempotencyKey) : undefined;
      return found?.["id"] as bigint | undefined;
    },
  };
}

/**
 * Writes lines to a new file, which only its owner can read, and which appears when it is complete. Returns their
 * number. Never overwrites a file or follows a link.
 */
export async function createFile(file: string, lines: AsyncIterable<string>): Promise<number> {
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
