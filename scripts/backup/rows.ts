// The SQL that reads the rows of a store as lines, and stores lines as rows. A line is JSON text that SQLite prints or
// reads, because Wrangler rounds integers beyond 2^53, and because the text of an SQL string would end at U+0000.

import { PET_JSON } from "../../src/pets/store.ts";
import { INT64 } from "../../src/values/int64.ts";
import { printJson } from "../../src/values/json.ts";
import { columnOf, PROPERTIES, parseLine } from "./lines.ts";
import type { Store } from "./wrangler-store.ts";

/** The SQL of a row as a line. A patch with null adds nothing. */
export const ROW_JSON = `json_patch(${PET_JSON},
  json_object('idempotencyKey', idempotency_key, 'createdBy', created_by, 'createdAt', created_at))`;

// A page is one string, which D1 limits to 2,000,000 bytes. Starting Wrangler for each takes a second.
const PAGE_BYTES = 1_000_000;
// They always fit: the longest have 6,800 bytes, 1,000 control characters, as \u0001, and a key of 255 backslashes.
const SAFE_ROWS = 250;

/** The lines of the rows up to the id `last`, in ascending order of id. */
export async function* readLines({ query }: Store, last = INT64.maximum): AsyncGenerator<string> {
  let [next, rows] = [INT64.minimum, SAFE_ROWS];
  // D1 bills every row that is read, so a page has a plain LIMIT.
  const readPage = (limit: number) =>
    query(`SELECT coalesce(group_concat(text, char(10)), '') FROM (
      SELECT ${ROW_JSON} AS text FROM pets WHERE id BETWEEN ${next} AND ${last} ORDER BY pets.id LIMIT ${limit})`);
  while (next <= last) {
    const [page] = await readPage(rows).catch((failure: Error) => {
      if (!failure.message.includes("too big")) throw failure;
      // The names have suddenly become longer.
      return readPage(SAFE_ROWS);
    });
    if (!page) return;
    const texts = page.split("\n");
    for (const text of texts) {
      const row = parseLine(text);
      yield printJson(row);
      next = row.id + 1n;
    }
    rows = Math.ceil((texts.length * PAGE_BYTES) / Buffer.byteLength(page));
  }
}

// Characters, of up to 3 bytes. D1 takes 100,000 bytes, but statements of more than 32 KB with many rows have been seen
// to run out of memory. The last row adds up to 7 KB.
const STATEMENT_LENGTH = 7_000;

/**
 * The statements that store lines, many in each, because a statement takes longer than a row. A row that is there
 * already, with its id or its Idempotency-Key, is skipped. One that breaks a CHECK fails, which INSERT OR IGNORE would
 * skip too.
 */
export function* insertSql(lines: Iterable<string>): Generator<string> {
  let rows = "";
  for (const line of lines) {
    // A string may contain anything else: D1 finds the end of a statement as SQLite does (ingestSql in workerd's
    // sqlite.c++). But locally, Wrangler removes BEGIN TRANSACTION from a file of SQL, even from a name.
    const row = line.replaceAll("'", "''").replaceAll("BEGIN TRANSACTION", "BEGIN\\u0020TRANSACTION");
    rows += rows ? `,${row}` : row;
    if (rows.length < STATEMENT_LENGTH) continue;
    yield insertRows(rows);
    rows = "";
  }
  if (rows) yield insertRows(rows);
}

const COLUMNS = PROPERTIES.map(columnOf).join(", ");
const VALUES = PROPERTIES.map((property) => `value ->> '${property}'`).join(", ");

// Without WHERE, SQLite would take ON CONFLICT for a join.
const insertRows = (rows: string) =>
  `INSERT INTO pets (${COLUMNS}) SELECT ${VALUES} FROM json_each('[${rows}]')
  WHERE true ON CONFLICT DO NOTHING;\n`;
