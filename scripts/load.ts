// Loads animals into an environment: `npm run load -- <environment> <file>`. Each line of the file adds one animal, as
// in a backup (backup.ts), and is proven first (prove.ts). Wrangler executes them in parts, because D1 ends an import
// after 30 seconds, and resets if one is large. After any failure, the same command continues.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { parseArguments } from "./environment.ts";
import { attempt, COUNT, type Count, prove, statementsOf, wordsOf } from "./prove.ts";
import { removeAtExit } from "./remove-at-exit.ts";
import { executeSql, queryRows } from "./wrangler.ts";

const FOLDER = join(import.meta.dirname, "../.wrangler");

// Of a part. Resets were reported from 5 MB on.
const MAX_LINES = 5000;
const MAX_BYTES = 3_000_000;

/** Parts of whole lines. The first line of each says when it was made, because D1 may skip a file that it knows. */
export async function* partsOf(statements: AsyncIterable<[number, string]>): AsyncGenerator<string> {
  const now = new Date().toISOString();
  let lines: string[] = [];
  let bytes = 0;
  let count = 0;
  const nextPart = () => `-- Part ${++count} (${now})\n${lines.join("")}`;
  for await (const [, sql] of statements) {
    if (lines.length === MAX_LINES || bytes >= MAX_BYTES) {
      yield nextPart();
      lines = [];
      bytes = 0;
    }
    lines.push(`${sql}\n`);
    bytes += Buffer.byteLength(sql) + 1;
  }
  if (lines.length > 0) yield nextPart();
}

/** `own`: how many have an id that the file can have. Callers add meanwhile what has a greater id. */
export type LoadCount = Count & { own: number };

/** What a load did, from the animals before and after it, unless these could not be counted. */
export function summarize(environment: string, lines: number, before?: LoadCount, after?: LoadCount): string {
  const numeral = (count: number) => count.toLocaleString("en");
  const has = after ? `${environment} has ${wordsOf(after)}` : `the animals of ${environment} could not be counted`;
  if (!before || !after) return `${numeral(lines)} lines are loaded; ${has}`;
  const added = after.own - before.own;
  const skipped = `${numeral(Math.max(0, lines - added))} skipped (id or Idempotency-Key taken)`;
  const isOpen = added > lines || added < after.animals - before.animals;
  const others = isOpen ? "callers have added others, because the service is open; " : "";
  return `${numeral(lines)} lines: ${numeral(added)} animals added, ${skipped}; ${others}${has}`;
}

/** The reason for which Wrangler failed, on one line. */
function reasonOf({ message }: Error): string {
  const text = stripVTControlCharacters(message).replace(/\s+/g, " ");
  const [, reason = text] = /\[ERROR\] (.*?) (If you think this is a bug|$)/.exec(text) ?? [];
  return reason.replace('{"D1_RESET_DO":true}', "D1 reset the database").replace(/\.$/, "");
}

if (import.meta.main) {
  const part = join(FOLDER, `load-${process.pid}.sql`);
  removeAtExit(part);
  try {
    const { environment, file } = parseArguments("load");
    const { lines, last } = await prove(file, environment).catch((failure: Error) => {
      throw new Error(`${failure.message}\nNothing was loaded.`);
    });
    const sql = `${COUNT}, count(*) FILTER (WHERE id <= ${last ?? "id"}) AS own FROM pets`;
    const count = () =>
      attempt(`The animals of ${environment} could not be counted`, () => queryRows(environment, sql)[0] as LoadCount);
    const before = count();
    await mkdir(FOLDER, { recursive: true });
    for await (const sql of partsOf(statementsOf(file, environment))) {
      const name = sql.slice(3, sql.indexOf("\n"));
      await writeFile(part, sql, { mode: 0o600 });
      try {
        executeSql(environment, ["--file", part], { output: "pipe" });
      } catch (failure) {
        throw new Error(`${name} is not loaded: ${reasonOf(failure as Error)}. Run the same command again.`);
      }
      console.log(`${name} is loaded.`);
    }
    console.log(summarize(environment, lines, before, count()));
  } catch (failure) {
    console.error((failure as Error).message);
    process.exitCode = 1;
  }
}
