// Proves a file of animals before it is used: each line has the form of a line of a backup (backup.ts), and SQLite
// executes it here, in a temporary database with the tables of the environment, not of this folder.

import { createReadStream } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { queryRows } from "./wrangler.ts";

// As SQLite's quote() prints a value, and as a backup has a text that would not be exact or on one line.
const LITERAL = String.raw`NULL|-?\d+(\.\d+)?(e[+-]\d+)?|'([^'\0\r]|'')*'|X'[\dA-F]*'|CAST\(X'[\dA-F]*' AS TEXT\)`;
// With an id, because a line without one would add its animal again each time.
const VALUES = String.raw`\(id(, \w+)*\) VALUES \([1-9]\d*(, (${LITERAL}))*\)`;
const ANIMAL = new RegExp(`^INSERT INTO pets ${VALUES} ON CONFLICT DO NOTHING;$`);
const MAX_LENGTH = 100_000; // D1's limit for a statement. A regular expression fails at some millions.
const FIRST_LINE = /^-- Animals of (\w+)$/;
const LAST_LINE = /^SELECT (\d+) AS animals;$/;

// Without those that Cloudflare, Wrangler and SQLite have for themselves.
const TABLES = `SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name NOT GLOB 'sqlite_*'
  AND tbl_name NOT GLOB '_cf_*' AND tbl_name NOT GLOB 'd1_*' ORDER BY type <> 'table', rowid`;

/** How many animals there are, and the greatest id, which is exact as a text. */
export type Count = { animals: number; last: string | null };
export const COUNT = "SELECT count(*) AS animals, CAST(max(id) AS TEXT) AS last";

/** For example `1,460 animals up to the id 1795132800000`. */
export const wordsOf = ({ animals, last }: Count): string =>
  `${animals.toLocaleString("en")} animals${last === null ? "" : ` up to the id ${last}`}`;

/**
 * The statements of a file, with the numbers of their lines: those that add an animal, and the last one of a backup.
 * Throws at any other line, at the first line of a different environment's backup, and if a backup ends too early.
 */
export async function* statementsOf(file: string, environment: string): AsyncGenerator<[number, string]> {
  let [number, isBackup, last] = [0, false, ""];
  for await (const line of linesOf(createReadStream(file))) {
    number++;
    const sql = line.trim();
    if (sql === "") continue;
    last = sql;
    const [isFirstLine, source] = FIRST_LINE.exec(sql) ?? [];
    if (isFirstLine) {
      if (source !== environment)
        throw new Error(
          `Its first line names ${source}, not ${environment}. If that is meant, write ${environment} there.`,
        );
      isBackup = true;
      continue;
    }
    if (!LAST_LINE.test(sql) && (sql.length > MAX_LENGTH || !ANIMAL.test(sql)))
      throw new Error(
        `Line ${number} is cut off, or not INSERT INTO pets (id, …) VALUES (literals) ON CONFLICT DO NOTHING;`,
      );
    if (/BEGIN TRANSACTION/i.test(sql))
      throw new Error(`Line ${number}: Wrangler removes BEGIN TRANSACTION. Write this text as CAST(X'…' AS TEXT).`);
    yield [number, sql];
  }
  if (last === "" || (isBackup && !LAST_LINE.test(last)))
    throw new Error("This file is incomplete: its last line must say how many animals it has. Get all of it first.");
}

/** Lines end at \n alone: readline ends them at U+2028, too, which a name may have. Throws if a file is not UTF-8. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let line = "";
  for await (const chunk of chunks) {
    const [end = "", ...next] = decoder.decode(chunk, { stream: true }).split("\n");
    line += end;
    for (const text of next) {
      yield line;
      line = text;
    }
  }
  yield line + decoder.decode();
}

/** Returns what `work` returns. If that fails, prints why, and returns nothing. */
export function attempt<Result>(failure: string, work: () => Result): Result | undefined {
  try {
    return work();
  } catch (cause) {
    console.error(`${failure}: ${(cause as Error).message}`);
    return undefined;
  }
}

const copyTables = (environment: string): DatabaseSync | undefined =>
  attempt(`The file is not proven, because the tables of ${environment} cannot be made here`, () => {
    const database = new DatabaseSync(""); // on the disk, because a file can be larger than the memory
    for (const { sql } of queryRows(environment, TABLES)) database.exec(String(sql));
    return database;
  });

/**
 * Executes a file here. Returns how many of its lines add an animal, and the animals that there are then. Throws at the
 * first line that fails. If the tables cannot be made here, it says so, and counts the lines.
 */
export async function prove(file: string, environment: string, database = copyTables(environment)) {
  let lines = 0;
  const count = () =>
    database ? (database.prepare(`${COUNT} FROM pets`).get() as Count) : { animals: lines, last: null };
  database?.exec("BEGIN");
  for await (const [number, sql] of statementsOf(file, environment)) {
    const [, stated] = LAST_LINE.exec(sql) ?? [];
    try {
      if (stated === undefined) {
        database?.exec(sql);
        lines++;
      } else if (Number(stated) !== count().animals) {
        throw new Error(`${count().animals} animals are before it, not ${stated}: lines are missing or repeated.`);
      }
    } catch (failure) {
      throw new Error(`Line ${number}: ${(failure as Error).message}`);
    }
  }
  const proof = { ...count(), lines };
  database?.close();
  return proof;
}
