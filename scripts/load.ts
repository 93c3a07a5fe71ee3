// Loads animals into an environment: `npm run load -- <environment> <file>`. The file is SQL that can be repeated, such
// as a backup (backup.ts). Wrangler executes it in parts, because D1 ends an import after 30 seconds, and resets if one
// is large. After any failure, the same command continues.

import { createReadStream } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArguments } from "./environment.ts";
import { executeSql, queryRows } from "./wrangler.ts";

const FOLDER = join(import.meta.dirname, "../.wrangler");

// Of a part. Resets were reported from 5 MB on.
const MAX_LINES = 5000;
const MAX_LENGTH = 3_000_000; // characters

/**
 * The parts of a file, of whole lines, which end at \n alone: readline ends them at U+2028, too, which a name may have.
 * The first line of each says when it was made, because D1 may skip a file that it knows. Throws if the file names a
 * different environment than this one.
 */
export async function* partsOf(
  chunks: AsyncIterable<string>,
  environment: string,
  now = new Date().toISOString(),
): AsyncGenerator<string> {
  let [part, lines, count] = ["", 0, 0];
  for await (const chunk of chunks) {
    for (const piece of chunk.split(/(?<=\n)/)) {
      part += piece;
      if (!piece.endsWith("\n")) continue;
      if (count === 0 && lines === 0) requireEnvironment(environment, part);
      if (++lines < MAX_LINES && part.length < MAX_LENGTH) continue;
      yield `-- Part ${++count} (${now})\n${part}`;
      [part, lines] = ["", 0];
    }
  }
  if (part) yield `-- Part ${++count} (${now})\n${part}`;
}

/** Animals from elsewhere have no name of an environment in their first line. */
function requireEnvironment(environment: string, firstLine: string): void {
  const [, source = environment] = /^\ufeff?-- Animals of (\S+)/.exec(firstLine) ?? [];
  if (source !== environment) throw new Error(`This file has the animals of ${source}, not of ${environment}.`);
}

if (import.meta.main) {
  const part = join(FOLDER, `load-${process.pid}.sql`);
  try {
    const { environment, file } = parseArguments("load");
    await mkdir(FOLDER, { recursive: true });
    for await (const sql of partsOf(createReadStream(file, "utf8"), environment)) {
      await writeFile(part, sql, { mode: 0o600 });
      executeSql(environment, ["--file", part], { output: "pipe" });
      console.log(`${sql.slice(3, sql.indexOf("\n"))} is loaded.`);
    }
    const [row = {}] = queryRows(environment, "SELECT count(*) AS animals, max(id) AS last FROM pets");
    console.log(`Loaded ${file}: ${environment} has ${row["animals"]} animals now, and the last id is ${row["last"]}.
Make a new backup now: to load this one later, too, could give ids a second time.`);
  } catch (failure) {
    console.error((failure as Error).message);
    process.exitCode = 1;
  } finally {
    await rm(part, { force: true });
  }
}
