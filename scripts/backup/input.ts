// The file of a restore: a backup, or animals from elsewhere, in the format of lines.ts. It is read and checked once.
// Its lines then wait in a temporary database, because there may be too many for memory.

import { createReadStream } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { printJson } from "../../src/values/json.ts";
import { checkRow, LINE_BYTES } from "./lines.ts";

const MOST_FAULTS = 10;

export type Input = Awaited<ReturnType<typeof readInput>>;

/** Throws an Error that names the invalid lines by their numbers. */
export async function readInput(file: string) {
  // Without a name, SQLite keeps it in a temporary file, and deletes that itself.
  const database = new DatabaseSync("", { readBigInts: true });
  database.exec("CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT, key TEXT UNIQUE); BEGIN");
  const insert = database.prepare("INSERT OR IGNORE INTO lines VALUES (?, ?, ?)");
  const faults: string[] = [];
  let total = 0;
  let last = 0n;
  let haveIds: boolean | undefined;
  for await (const bytes of linesOf(file)) {
    total++;
    const fault = add(bytes);
    if (fault && faults.push(`line ${total}: ${fault}`) === MOST_FAULTS) break;
  }
  if (total === 0) throw new Error(`${file} is empty. Name a file with at least one animal.`);
  if (faults.length > 0) {
    const title = `${file} has invalid lines. The first ones are:`;
    throw new Error([title, ...faults, "Correct the file, and run the same command again."].join("\n"));
  }

  /** The lines in ascending order of id, without the first `skipped` ones. */
  function* lines(skipped = 0): Generator<string> {
    const select = database.prepare("SELECT text FROM lines ORDER BY id LIMIT -1 OFFSET ?");
    for (const { text } of select.iterate(skipped)) yield String(text);
  }
  return { total, lines };

  /** Stores a line. Returns what is wrong with it, if anything. */
  function add(bytes: Uint8Array): string {
    const row = checkRow(bytes);
    if (typeof row === "string") return row;
    const { id: written, ...others } = row;
    haveIds ??= written !== undefined;
    if (haveIds !== (written !== undefined)) return "either all lines must have an id, or none";
    const id = written ?? last + 1n;
    if (id <= last) return `id must be greater than ${last}, the id of an earlier line`;
    last = id;
    const { changes } = insert.run(id, printJson({ id, ...others }), row.idempotencyKey ?? null);
    return changes === 0n ? "has the idempotencyKey of an earlier line" : "";
  }
}

/** Not readline, because it also ends a line at U+2028, which a name can contain. Stops in a line that is too long. */
async function* linesOf(file: string): AsyncGenerator<Uint8Array> {
  let rest = "";
  for await (const chunk of createReadStream(file, "latin1")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.map((line) => Buffer.from(line, "latin1"));
    // It may have no end, as in /dev/zero.
    if (rest.length > LINE_BYTES) break;
  }
  if (rest !== "") yield Buffer.from(rest, "latin1");
}
