// The SQL that reads the rows of a store as lines, and stores lines as rows. A line is JSON text that SQLite prints or
// reads, because Wrangler rounds integers beyond 2^53, and because the text of an SQL string would end at U+0000.

import { PET_JSON } from "../../src/pets/store.ts";
import { INT64 } from "../../src/values/int64.ts";
import { parseJson, printJson } from "../../src/values/json.ts";
import { COVERED_COLUMNS } from "./lines.ts";
import type { Store } from "./wrangler-store.ts";

// A patch with null adds nothing.
const ROW_JSON = `json_patch(${PET_JSON},
  json_object('idempotencyKey', idempotency_key, 'createdBy', created_by, 'createdAt', created_at))`;

// A page is one string, which D1 limits to 2,000,000 bytes. Starting Wrangler for each takes a second.
const PAGE_BYTES = 1_000_000;
// They always fit: the longest have 6,800 bytes, 1,000 control characters, as \u0001, and a key of 255 backslashes.
const SAFE_ROWS = 250;

const parseRow = (line: string) => parseJson(line) as { id: bigint };

/**
 * The lines of all rows, in ascending order of id and up to the greatest id at the start: the same whatever callers add
 * meanwhile, because ids rise and nothing changes. D1 bills every row that is read, so a page has a plain LIMIT. Throws
 * if the store is replaced meanwhile: if rows are gone, or the first or the last one has changed.
 */
export async function* readLines({ environment, query }: Store): AsyncGenerator<string, undefined> {
  const replaced = `Something else has changed or removed animals of ${environment} meanwhile.
Run the same command again.`;
  const firstAnd = (last: bigint | string) =>
    query(`SELECT ${ROW_JSON} FROM pets WHERE id IN ((SELECT min(id) FROM pets), ${last}) ORDER BY pets.id`);
  const atStart = await firstAnd("(SELECT max(id) FROM pets)");
  const newest = atStart.at(-1);
  if (newest === undefined) return;
  const last = parseRow(newest).id;
  let next = INT64.minimum;
  let rows = SAFE_ROWS;
  const readPage = (limit: number) =>
    query(`SELECT coalesce(group_concat(text, char(10)), '') FROM (
      SELECT ${ROW_JSON} AS text FROM pets WHERE id BETWEEN ${next} AND ${last} ORDER BY pets.id LIMIT ${limit})`);
  while (next <= last) {
    const [page] = await readPage(rows).catch((failure: Error) => {
      if (!failure.message.includes("too big")) throw failure;
      // The names have suddenly become longer.
      return readPage(SAFE_ROWS);
    });
    if (!page) throw new Error(replaced);
    const texts = page.split("\n");
    for (const text of texts) {
      const row = parseRow(text);
      yield printJson(row);
      next = row.id + 1n;
    }
    rows = Math.ceil((texts.length * PAGE_BYTES) / Buffer.byteLength(page));
  }
  if ((await firstAnd(last)).join() !== atStart.join()) throw new Error(replaced);
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

const inCamelCase = (column: string) => column.replaceAll(/_./g, (part) => part.slice(1).toUpperCase());
const VALUES = COVERED_COLUMNS.map((column) => `value ->> '${inCamelCase(column)}'`);

// Without WHERE, SQLite would take ON CONFLICT for a join.
const insertRows = (rows: string) =>
  `INSERT INTO pets (${COVERED_COLUMNS.join(", ")}) SELECT ${VALUES.join(", ")} FROM json_each('[${rows}]')
  WHERE true ON CONFLICT DO NOTHING;\n`;
