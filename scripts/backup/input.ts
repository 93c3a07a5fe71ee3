// The file of a restore: a backup, or animals from elsewhere, in the format of lines.ts. It is read once to check it, and
// again to load and to verify it, so that memory does not grow with it. Therefore ids must be ascending.

import { createReadStream, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { checkRow, Fault, LINE_BYTES, type Line, lineOf } from "./lines.ts";
import { Failure } from "./store.ts";
import { TABLES, type Table } from "./tables.ts";

// Half of int64: as many ids remain for new animals. SQLite picks ids at random once the greatest is used.
const GREATEST_ID = 2n ** 62n;

const FAULTS_SHOWN = 10;

/** The lines of a file, each with an id. Throws a Failure at the end that names the invalid lines by their numbers. */
export async function* readInput(file: string): AsyncGenerator<Line> {
  if (!statSync(file).isFile()) throw new Failure(`${file} is not a regular file.`);
  // Keys must be unique, and there may be too many to remember: SQLite keeps an unnamed database in a temporary file.
  using keys = new DatabaseSync("");
  const check = checker(keys);
  const shown: string[] = [];
  let [number, faults] = [0, 0];
  for await (const bytes of linesOf(file)) {
    number++;
    try {
      yield check(bytes, number);
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      if (++faults <= FAULTS_SHOWN) shown.push(`line ${number}: ${fault.message}`);
    }
  }
  if (faults === 0) return;
  if (faults > FAULTS_SHOWN) shown.push(`and ${faults - FAULTS_SHOWN} more`);
  throw new Failure([`${file} has invalid lines. Correct them first:`, ...shown].join("\n"));
}

/** Checks one line after the other: ids ascend, or no line has one and they are numbered from 1; keys are unique. */
function checker(keys: DatabaseSync): (bytes: Uint8Array, number: number) => Line {
  keys.exec("CREATE TABLE keys (key TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID; BEGIN");
  const add = keys.prepare("INSERT INTO keys VALUES (?, ?) ON CONFLICT DO NOTHING");
  const find = keys.prepare("SELECT line FROM keys WHERE key = ?");
  let last: { table: Table; id: bigint; numbered: boolean } | undefined;
  return (bytes, number) => {
    const [table, row] = checkRow(bytes);
    const id = row["id"] as bigint | undefined;
    const before = last?.table === table ? last : { table, id: 0n, numbered: id === undefined };
    if (last && TABLES.indexOf(table) < TABLES.indexOf(last.table)) {
      throw new Fault(`is a line of ${table.name}, which must come before those of ${last.table.name}`);
    }
    if (before.numbered && id !== undefined) throw new Fault("has an id, but earlier lines do not");
    if (!before.numbered && id === undefined) throw new Fault("lacks an id, but earlier lines have one");
    if (id !== undefined && (id < 1n || id > GREATEST_ID)) throw new Fault(`id must be from 1 to ${GREATEST_ID}`);
    if (id !== undefined && id <= before.id) throw new Fault(`id must be greater than ${before.id}, an earlier id`);
    const key = row["idempotencyKey"] === undefined ? undefined : `${table.name} ${row["idempotencyKey"]}`;
    if (key && add.run(key, number).changes === 0) {
      throw new Fault(`has the idempotencyKey of line ${find.get(key)?.["line"]}`);
    }
    last = { ...before, id: id ?? before.id + 1n };
    return lineOf(table, { ...row, id: last.id });
  };
}

/** Not readline, because it also ends a line at U+2028, which a name can contain. Keeps only the start of an overlong line. */
async function* linesOf(file: string): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    const bytes = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf("\n"); end >= 0; end = bytes.indexOf("\n", start)) {
      yield bytes.subarray(start, end);
      start = end + 1;
    }
    rest = bytes.subarray(start, start + LINE_BYTES + 1);
  }
  if (rest.length > 0) yield rest;
}
