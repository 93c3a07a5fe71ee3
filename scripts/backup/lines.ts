// The format of a backup: one line for each animal, a JSON object of its properties, its Idempotency-Key, its caller
// and the time when it was added. Animals from elsewhere need not have the last three.

import * as z from "zod/mini";
import { CALLER_NAME } from "../../src/http/authentication.ts";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { NewPet, Pet } from "../../src/pets/pet.ts";
import { PET_JSON } from "../../src/pets/store.ts";
import { Int64 } from "../../src/values/int64.ts";
import { parseJson, UTF_8 } from "../../src/values/json.ts";
import { must, noOther, problemsOf } from "../../src/values/wording.ts";

/** The columns of pets, all of which a backup covers. */
export const COVERED_COLUMNS = ["id", "name", "category_id", "status", "idempotency_key", "created_by", "created_at"];

/** The SQL that lists the columns of all tables of a store, such as pets.id. */
export const STORED_COLUMNS = `SELECT tables.name || '.' || columns.name AS name
  FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
  WHERE tables.type = 'table' AND tables.name <> 'd1_migrations'
  AND tables.name NOT GLOB '_cf_*' AND tables.name NOT GLOB 'sqlite_*'`;

// The properties of a line have the same names in camel case.
const VALUES = COVERED_COLUMNS.map(
  (name) => `value ->> '${name.replaceAll(/_./g, (part) => part.slice(1).toUpperCase())}'`,
);

/** The SQL that prints a row as a line. A patch with null adds nothing. */
export const ROW_JSON = `json_patch(${PET_JSON},
  json_object('idempotencyKey', idempotency_key, 'createdBy', created_by, 'createdAt', created_at))`;

// As the table checks it: the quotes that a caller may put around a key do not belong to it.
const beKey = must("a string of 1 to 255 printable ASCII characters");
const idempotencyKey = z.optional(z.string(beKey).check(z.regex(/^[ -~]{1,255}$/, beKey)));

const beCaller = must("the name of a caller, such as API_KEY_SHOP");
const createdBy = z.optional(z.string(beCaller).check(z.regex(CALLER_NAME, beCaller)));
const createdAt = z.optional(Int64);

// After the greatest int64, SQLite chooses random ids, and readers who page would miss them.
const MAX_ID = 2n ** 62n;
const beId = must(`an integer from 1 to ${MAX_ID}`);
// Animals from elsewhere need not have an id or a status. The order is that of ROW_JSON.
const id = z.optional(Pet.shape.id.check(z.gte(1n, beId), z.lte(MAX_ID, beId)));
const shape = { ...Pet.shape, ...NewPet.shape, id, idempotencyKey, createdBy, createdAt };
const unknown = noOther("property", shape);
const Row = z
  .strictObject(shape, { error: (issue) => unknown.error(issue) ?? "is not a JSON object" })
  .check(z.refine((row) => row.createdBy || !row.idempotencyKey, "an idempotencyKey needs a createdBy"));
export type Row = z.infer<typeof Row>;

/** The longest line of a file, in bytes. An animal of which every character is an escape fits. */
export const LINE_BYTES = BODY_LIMIT;

/** The row of a line, by the service's own rules, or what is wrong with it. */
export function checkRow(bytes: Uint8Array): Row | string {
  if (bytes.length > LINE_BYTES) return `is longer than ${LINE_BYTES} bytes`;
  let value: unknown;
  try {
    value = parseJson(UTF_8.decode(bytes));
  } catch {
    return "is not valid JSON in UTF-8";
  }
  const { success, data, error } = Row.safeParse(value);
  return success ? data : problemsOf(error).join("; ");
}

// Characters, of up to 3 bytes. D1 takes 100,000 bytes, but statements of more than 32 KB with many rows have been seen
// to run out of memory. The last row adds up to 7 KB.
const STATEMENT_LENGTH = 7_000;

/**
 * The statements that store lines: from JSON, because the text of an SQL string would end at U+0000, and many lines in
 * each, because a statement takes longer than a row. A row that is there already, with its id or its Idempotency-Key,
 * is skipped. One that breaks a CHECK fails, which INSERT OR IGNORE would skip too.
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

// Without WHERE, SQLite would take ON CONFLICT for a join.
const insertRows = (rows: string) =>
  `INSERT INTO pets (${COVERED_COLUMNS.join(", ")}) SELECT ${VALUES.join(", ")} FROM json_each('[${rows}]')
  WHERE true ON CONFLICT DO NOTHING;\n`;
