// A stock of animals in a file, in the form of lines.ts: a backup, or one from elsewhere.

import { createReadStream } from "node:fs";
import { checkLine, Fault, type Line } from "./lines.ts";
import { Failure } from "./store.ts";
import type { Table } from "./tables.ts";

const FAULTS_SHOWN = 10;

/**
 * The lines of a stock, each with an id: one that has none is numbered from 1. Throws at the end, with the numbers of the
 * lines that are wrong.
 */
export async function* readStock(file: string): AsyncGenerator<Line> {
  const faults: string[] = [];
  const check = checker();
  let number = 0;
  for await (const bytes of linesOf(file)) {
    number++;
    try {
      yield check(bytes, number);
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      faults.push(`line ${number}: ${fault.message}`);
    }
  }
  if (faults.length === 0) return;
  const shown = faults.slice(0, FAULTS_SHOWN);
  const more = faults.length > shown.length ? [`and ${faults.length - shown.length} more`] : [];
  throw new Failure([`Nothing was loaded: ${file} has wrong lines.`, ...shown, ...more].join("\n"));
}

/** Checks one line after the other, also by those before it: ids and keys are unique, and all rows have ids or none. */
function checker(): (bytes: Uint8Array, number: number) => Line {
  const seen = new Map<string, number>();
  const tables = new Map<Table, { rows: number; numbered: boolean }>();
  return (bytes, number) => {
    const { table, row } = checkLine(decode(bytes));
    const hasId = row["id"] !== undefined;
    const { rows, numbered } = tables.get(table) ?? { rows: 0, numbered: !hasId };
    if (numbered && hasId) throw new Fault("has an id, which the lines before have not");
    if (!numbered && !hasId) throw new Fault("has no id, which the lines before have");
    tables.set(table, { rows: rows + 1, numbered });
    row["id"] ??= BigInt(rows + 1);
    for (const property of ["id", "idempotencyKey"]) {
      if (row[property] === undefined) continue;
      const value = `${table.name} ${property} ${row[property]}`;
      const other = seen.get(value);
      if (other !== undefined) throw new Fault(`has the ${property} of line ${other}`);
      seen.set(value, number);
    }
    return { table, row };
  };
}

// Without a byte order mark, as Windows may write it.
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw new Fault("is not valid UTF-8");
  }
}

/** Not by readline, to which U+2028 in a name ends a line too. */
async function* linesOf(file: string): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    const bytes = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf("\n"); end >= 0; end = bytes.indexOf("\n", start)) {
      yield bytes.subarray(start, end);
      start = end + 1;
    }
    rest = bytes.subarray(start);
  }
  if (rest.length > 0) yield rest;
}
