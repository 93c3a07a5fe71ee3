// The form of a backup: a line for each row, which is a JSON object of the row's properties, with its Idempotency-Key if it
// has one. A line of another table than pets begins with the table's name: {"table":"…","id":…}.

import { BODY_LIMIT } from "../../src/http/body.ts";
import { jsonOf, nameOf } from "../../src/d1/columns.ts";
import { parseJson, printJson } from "../../src/values/json.ts";
import { TABLES, type Table } from "./tables.ts";

export interface Line {
  table: Table;
  row: Record<string, unknown>;
}

// A line has some more than the body of a request: an id, a key, what is the default.
const LINE_BYTES = BODY_LIMIT + 1024;

const PROPERTIES = TABLES.flatMap(({ columns }) => Object.keys(columns));

/** What is wrong with a line, in words that follow "line 7: ". */
export class Fault extends Error {}

/** The SQL that prints a row as a line. */
export function lineSql({ name, columns }: Table): string {
  const json = jsonOf(columns);
  return name === "pets" ? json : `json_patch('{"table":"${name}"}', ${json})`;
}

/** The line in the one form that all lines of equal rows have. */
export function printLine({ table: { name, columns }, row }: Line): string {
  const members = Object.keys(columns).map((property) => [property, row[property]]);
  return printJson({ table: name === "pets" ? undefined : name, ...Object.fromEntries(members) });
}

/** Throws a Fault. */
export function parseLine(text: string): Line {
  const value = parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Fault("is no JSON object");
  const { table: name = "pets", ...row }: Record<string, unknown> = { ...value };
  const table = TABLES.find((table) => table.name === name);
  if (!table) throw new Fault(`there is no table ${name}`);
  return { table, row };
}

/** The line as the service would accept its row; throws a Fault that names all that is wrong. */
export function checkLine(text: string): Line {
  if (text.trim() === "") throw new Fault("is empty");
  if (Buffer.byteLength(text) > LINE_BYTES) throw new Fault("is longer than any animal that the service accepts");
  const { table, row } = parseLine(text);
  const { success, data, error } = table.row.safeParse(row);
  if (success) return { table, row: data };
  throw new Fault([...new Set(error.issues.map(({ path, message }) => [...path, message].join(" ")))].join("; "));
}

/**
 * The line for `insertSql`, within a SQL text. In JSON no control character can occur, so a tab stands for the apostrophe:
 * this is no longer than the line, and has nothing that would end a SQL text. And Wrangler takes BEGIN TRANSACTION for
 * one, and removes it, even from a name.
 */
export function sqlText(line: Line): string {
  return printLine(line).replaceAll("'", "\t").replaceAll("BEGIN TRANSACTION", "BEGIN\\u0020TRANSACTION");
}

/** The SQL that stores the rows of lines of one table. */
export function insertSql({ name, columns }: Table, texts: string[]): string {
  const names = Object.values(columns).map(nameOf).join(", ");
  const values = Object.keys(columns).map((property) => `value ->> '${property}'`);
  const json = `replace('[${texts.join(",")}]', char(9), '''')`;
  return `INSERT INTO ${name} (${names}) SELECT ${values.join(", ")} FROM json_each(${json});\n`;
}

function parse(text: string): unknown {
  try {
    return parseJson(text, PROPERTIES);
  } catch {
    throw new Fault("is not valid JSON");
  }
}
