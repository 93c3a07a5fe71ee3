// The format of a backup: one line for each row, a JSON object of the row's properties and of its Idempotency-Key if it has
// one. A line of a table other than pets starts with the name of the table: {"table":"…","id":…}.

import { jsonOf, nameOf } from "../../src/d1/columns.ts";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { parseJson, printJson, UTF_8 } from "../../src/values/json.ts";
import { problemsOf } from "../../src/values/wording.ts";
import { TABLES, type Table } from "./tables.ts";

type Row = Record<string, unknown>;

export interface Line {
  table: Table;
  id: bigint;
  /** The row for `loadSql`. Equal rows have equal texts. */
  text: string;
}

/** The longest line. It has a little more than the body of a request: an id, a key, the defaults. */
export const LINE_BYTES = BODY_LIMIT + 1024;

const PROPERTIES = TABLES.flatMap(({ columns }) => Object.keys(columns));

/** What is wrong with a line, in words that follow "line 7: ". */
export class Fault extends Error {}

/** The SQL that prints a row as a line. */
export function lineSql({ name, columns }: Table): string {
  const json = jsonOf(columns);
  return name === "pets" ? json : `json_patch('{"table":"${name}"}', ${json})`;
}

/** The row of a line, by the service's own rules. Throws a Fault that names every problem. */
export function checkRow(bytes: Uint8Array): [Table, Row] {
  if (bytes.length > LINE_BYTES) throw new Fault("is longer than any animal that the service accepts");
  const text = attempt(() => UTF_8.decode(bytes), "is not valid UTF-8");
  if (text.trim() === "") throw new Fault("is empty");
  const [table, row] = parseRow(text);
  const { success, data, error } = table.row.safeParse(row);
  if (success) return [table, data];
  throw new Fault(problemsOf(error).join("; "));
}

/** A line that a store printed. */
export const storedLine = (text: string): Line => lineOf(...parseRow(text));

/**
 * JSON contains no control character, so a tab can replace the apostrophe: nothing in the text ends an SQL string. Wrangler
 * removes BEGIN TRANSACTION from every file of SQL, even from a name.
 */
export function lineOf(table: Table, row: Row): Line {
  const json = printJson(Object.fromEntries(Object.keys(table.columns).map((property) => [property, row[property]])));
  const text = json.replaceAll("'", "\t").replaceAll("BEGIN TRANSACTION", "BEGIN\\u0020TRANSACTION");
  return { table, id: row["id"] as bigint, text };
}

/** The SQL that stores lines, all for the same table. */
export function loadSql({ name, columns }: Table, lines: Line[]): string {
  const names = Object.values(columns).map(nameOf).join(", ");
  const values = Object.keys(columns).map((property) => `value ->> '${property}'`);
  const json = `replace('[${lines.map(({ text }) => text).join(",")}]', char(9), '''')`;
  return `INSERT INTO ${name} (${names}) SELECT ${values.join(", ")} FROM json_each(${json});\n`;
}

function parseRow(text: string): [Table, Row] {
  const value = attempt(() => parseJson(text, PROPERTIES), "is not valid JSON");
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Fault("is not a JSON object");
  const { table: name = "pets", ...row }: Row = { ...value };
  const table = TABLES.find((table) => table.name === name);
  if (!table) throw new Fault(`table must be one of ${TABLES.map(({ name }) => name).join(", ")}`);
  return [table, row];
}

/** Throws a Fault instead of what `action` throws. */
function attempt<T>(action: () => T, fault: string): T {
  try {
    return action();
  } catch {
    throw new Fault(fault);
  }
}
