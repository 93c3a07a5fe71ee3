// Loads animals into an environment: `npm run load -- <environment> <file>`. The file is SQL that can be repeated, such
// as a backup (backup.ts). Wrangler executes it in parts, because D1 ends an import after 30 seconds, and resets if one
// is large. After any failure, the same command continues.

import { createReadStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArguments } from "./environment.ts";
import { removeAtExit } from "./remove-at-exit.ts";
import { executeSql, queryRows } from "./wrangler.ts";

const FOLDER = join(import.meta.dirname, "../.wrangler");

// Of a part. Resets were reported from 5 MB on.
const MAX_LINES = 5000;
const MAX_BYTES = 3_000_000;

/**
 * The parts of a file, of whole lines. The first line of each says when it was made, because D1 may skip a file that it
 * knows. Throws if the file names a different environment than this one, and before the last part of a backup that ends
 * too early: its last line may be cut off.
 */
export async function* partsOf(
  chunks: AsyncIterable<string>,
  environment: string,
  now = new Date().toISOString(),
): AsyncGenerator<string> {
  let lines: string[] = [];
  let bytes = 0;
  let count = 0;
  let isBackup: boolean | undefined;
  const nextPart = () => `-- Part ${++count} (${now})\n${lines.join("")}`;
  for await (const line of linesOf(chunks)) {
    isBackup ??= namesEnvironment(line, environment);
    if (lines.length === MAX_LINES || bytes >= MAX_BYTES) {
      yield nextPart();
      lines = [];
      bytes = 0;
    }
    lines.push(line);
    bytes += Buffer.byteLength(line);
  }
  if (isBackup !== false && !/^SELECT \d+ AS animals;\s*$/.test(lines.at(-1) ?? ""))
    throw new Error("This file is incomplete: its last line must say how many animals it has. Get all of it first.");
  if (lines.length > 0) yield nextPart();
}

/** Whether a first line is that of a backup, which must be of this environment. */
function namesEnvironment(firstLine: string, environment: string): boolean {
  const [, source] = /^\ufeff?-- Animals of (\S+)/.exec(firstLine) ?? [];
  if (source === undefined || source === environment) return source !== undefined;
  throw new Error(`This file has the animals of ${source}, not of ${environment}.`);
}

/** Lines end at \n alone: readline ends them at U+2028, too, which a name may have. */
async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let line = "";
  for await (const chunk of chunks) {
    for (const piece of chunk.split(/(?<=\n)/)) {
      line += piece;
      if (!piece.endsWith("\n")) continue;
      yield line;
      line = "";
    }
  }
  if (line) yield line;
}

if (import.meta.main) {
  const part = join(FOLDER, `load-${process.pid}.sql`);
  removeAtExit(part);
  let advice = "";
  try {
    const { environment, file } = parseArguments("load");
    await mkdir(FOLDER, { recursive: true });
    for await (const sql of partsOf(createReadStream(file, "utf8"), environment)) {
      advice = `\nWhat was loaded stays: run the same command again. If the same part fails again, prove the
file, as under "Back up" in docs/OPERATIONS.md: that names the line.`;
      await writeFile(part, sql, { mode: 0o600 });
      executeSql(environment, ["--file", part], { output: "pipe" });
      advice = "";
      console.log(`${sql.slice(3, sql.indexOf("\n"))} is loaded.`);
    }
    const [row = {}] = queryRows(environment, "SELECT count(*) AS animals FROM pets");
    console.log(`Loaded ${file}: ${environment} has ${row["animals"]} animals now.`);
  } catch (failure) {
    console.error((failure as Error).message + advice);
    process.exitCode = 1;
  }
}
