// The file of a restore: a backup, or animals from elsewhere, in the format of lines.ts. It is read and checked once. Its lines
// then wait in a temporary database, because there may be too many for memory.

import { createReadStream, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { printJson } from "../../src/values/json.ts";
import { SMOKE_TEST } from "../environment.ts";
import { Failure } from "./connection.ts";
import { checkRow, Fault, LINE_BYTES, type Line, lineOf } from "./lines.ts";

// Half of int64: as many ids remain for new animals. SQLite picks ids at random once the greatest is used.
const GREATEST_ID = 2n ** 62n;

const MOST_FAULTS = 10;

export interface Input {
  /** How many lines there are. */
  total: number;
  /** The lines after the one with this id, or all, in ascending order of id. */
  after(id?: bigint): Iterable<Line>;
}

/** Throws a Failure that names the invalid lines by their numbers. */
export async function readInput(file: string): Promise<Input> {
  if (!statSync(file).isFile()) throw new Failure(`${file} is not a regular file.`);
  // Without a name, SQLite keeps it in a temporary file, and deletes that itself.
  const database = new DatabaseSync("", { readBigInts: true });
  const add = adder(database);
  const faults: string[] = [];
  let number = 0;
  for await (const bytes of linesOf(file)) {
    number++;
    try {
      add(bytes, number);
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      if (faults.push(`line ${number}: ${fault.message}`) === MOST_FAULTS) break;
    }
  }
  if (number === 0) throw new Failure(`${file} is empty.`);
  if (faults.length > 0) throw new Failure([`${file} has invalid lines. The first ones are:`, ...faults].join("\n"));
  return { total: number, after: (id = 0n) => linesAfter(database, id) };
}

function* linesAfter(database: DatabaseSync, after: bigint): Generator<Line> {
  const select = database.prepare("SELECT id, text FROM lines WHERE id > ? ORDER BY id");
  for (const { id, text } of select.iterate(after)) yield { id: BigInt(String(id)), text: String(text) };
}

/** Checks and stores one line after the other. The first valid one decides whether all lines have an id, or none. */
function adder(database: DatabaseSync): (bytes: Uint8Array, number: number) => void {
  database.exec("CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT, key TEXT UNIQUE, number INTEGER); BEGIN");
  const insert = database.prepare("INSERT INTO lines VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING");
  const find = database.prepare("SELECT number FROM lines WHERE key = ?");
  let idOf: IdOf | undefined;
  return (bytes, number) => {
    const { id, ...row } = checkRow(bytes);
    idOf ??= id === undefined ? numbered() : ascending();
    const line = lineOf({ id: idOf(id), ...row });
    const key = row.idempotencyKey ?? null;
    if (key === SMOKE_TEST.key && !isSmokeTest(line)) {
      throw new Fault(`idempotencyKey "${key}" is reserved for the animal of the smoke test`);
    }
    if (insert.run(line.id, line.text, key, number).changes === 0n) {
      throw new Fault(`has the idempotencyKey of line ${find.get(key)?.["number"]}`);
    }
  };
}

/** The id of a line, by the one that is written in it. Throws a Fault. */
type IdOf = (written: bigint | undefined) => bigint;

function ascending(): IdOf {
  let last = 0n;
  return (id) => {
    if (id === undefined) throw new Fault("lacks an id, but earlier lines have one");
    if (id < 1n || id > GREATEST_ID) throw new Fault(`id must be from 1 to ${GREATEST_ID}`);
    if (id <= last) throw new Fault(`id must be greater than ${last}, an earlier id`);
    last = id;
    return id;
  };
}

function numbered(): IdOf {
  let last = 0n;
  return (id) => {
    if (id !== undefined) throw new Fault("has an id, but earlier lines do not");
    return ++last;
  };
}

/** Whether this is the animal that the smoke test adds, whatever its id. */
export function isSmokeTest({ id, text }: Line): boolean {
  return text === printJson({ id, ...SMOKE_TEST.pet, idempotencyKey: SMOKE_TEST.key });
}

/** Not readline, because it also ends a line at U+2028, which a name can contain. Keeps only the start of an overlong line. */
async function* linesOf(file: string): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file)) {
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
