// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file has the store as it was at the start. It appears under its name when it is complete. It never overwrites a file or
// follows a link.

import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, lstatSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command, progress } from "./command.ts";
import { type Connection, checkColumns, Failure, readPages } from "./connection.ts";

/** Returns the line to end with. Throws Failure and WranglerFailed. */
export async function backup(store: Connection, file: string): Promise<string> {
  if (exists(file)) throw new Failure(`${file} already exists, and a backup never overwrites anything.`);
  const folder = dirname(file);
  if (!exists(folder)) throw new Failure(`The folder ${folder} does not exist: create it first.`);
  await checkColumns(store);
  const partial = join(folder, `backup-${randomUUID()}.partial`);
  // Readable only by its owner, because it has Idempotency-Keys.
  const output = openSync(partial, "wx", 0o600);
  process.once("exit", () => rmSync(partial, { force: true }));
  let saved = 0;
  for await (const texts of readPages(store)) {
    writeFileSync(output, `${texts.join("\n")}\n`);
    saved += texts.length;
    progress(`saved ${saved} lines`);
  }
  fsyncSync(output);
  closeSync(output);
  // An empty file reserves the name, and is then replaced: not every file system has hard links. Throws if the name is taken.
  closeSync(openSync(file, "wx"));
  renameSync(partial, file);
  return `Saved ${store.environment} in ${file}: ${saved} lines.`;
}

/** Whether a path has anything, such as a link that leads nowhere. */
const exists = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

if (import.meta.main) await command("backup", backup, "Nothing was saved. Run the same command again.");
