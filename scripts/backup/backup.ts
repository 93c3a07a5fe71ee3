// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file has the store as it was at the start. It appears when it is complete, and never overwrites a file or follows a
// link.

import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { command } from "./command.ts";
import { readLines, type Store } from "./wrangler-store.ts";

/** Returns the text to end with. Throws with a message for the operator. */
export async function backup(store: Store, file: string): Promise<string> {
  if (existsSync(file)) {
    throw new Error(`${file} already exists, and a backup never overwrites anything. Name a different file.`);
  }
  const partial = `${file}.${randomUUID()}.partial`;
  // Readable only by its owner, because it has Idempotency-Keys.
  const output = openSync(partial, "wx", 0o600);
  process.once("exit", () => rmSync(partial, { force: true }));
  let total = 0;
  for await (const line of readLines(store)) {
    writeFileSync(output, `${line}\n`);
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
