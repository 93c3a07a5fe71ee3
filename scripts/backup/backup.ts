// Saves a store in a file, one row per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file has the store as it was at the start. It appears under its name when it is complete. It never overwrites a file or
// follows a link.

import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command, progress } from "./command.ts";
import { checkTables, Failure, readExtent, readStore, type Store } from "./store.ts";

/** Returns the line to end with. Throws Failure and WranglerFailed. */
export async function backup(store: Store, file: string): Promise<string> {
  if (lstatSync(file, { throwIfNoEntry: false })) {
    throw new Failure(`${file} already exists, and a backup never overwrites anything.`);
  }
  await checkTables(store);
  const partial = join(dirname(file), `backup-${randomUUID()}.partial`);
  // Readable only by its owner, because it has Idempotency-Keys.
  const output = openSync(partial, "wx", 0o600);
  process.once("exit", () => rmSync(partial, { force: true }));
  let saved = 0;
  for await (const { lines, reached } of readStore(store, await readExtent(store))) {
    writeFileSync(output, `${lines.join("\n")}\n`);
    saved += lines.length;
    progress(`saved ${reached}`);
  }
  fsyncSync(output);
  closeSync(output);
  publish(partial, file);
  return `Saved ${store.environment} in ${file}: ${saved} lines.`;
}

/** Gives a file its name. Throws EEXIST if the name is taken. */
export function publish(partial: string, file: string, link = linkSync): void {
  try {
    link(partial, file);
  } catch {
    // Not every file system has hard links. An empty file reserves the name, and is then replaced.
    closeSync(openSync(file, "wx"));
    renameSync(partial, file);
  }
}

if (import.meta.main) await command("backup", backup);
