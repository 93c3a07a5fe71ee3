// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file has the store as it was at the start. It appears when it is complete, and never overwrites a file or follows a
// link.

import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, lstatSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command } from "./command.ts";
import { readLines, type Store } from "./wrangler-store.ts";

// Readable only by its owner, because it has Idempotency-Keys.
const MODE = 0o600;

/** Returns the text to end with. Throws with a message for the operator. */
export async function backup(store: Store, file: string): Promise<string> {
  if (lstatSync(file, { throwIfNoEntry: false }))
    throw new Error(`${file} already exists, and a backup never overwrites anything. Name a different file.`);
  // Throws if the folder does not exist.
  const partial = join(realpathSync(dirname(file)), `backup-${randomUUID()}.partial`);
  const output = openSync(partial, "wx", MODE);
  process.once("exit", () => rmSync(partial, { force: true }));
  let total = 0;
  for await (const { text } of readLines(store)) {
    writeFileSync(output, `${text}\n`);
    total++;
  }
  fsyncSync(output);
  closeSync(output);
  // An empty file reserves the name, and is then replaced: not every file system has hard links. Throws if the name is
  // taken. SIGKILL can leave the empty file.
  closeSync(openSync(file, "wx"));
  renameSync(partial, file);
  return `Saved ${store.environment} in ${file}: ${total} lines.`;
}

if (import.meta.main) await command("backup", backup, "Nothing was saved. Run the same command again.");
