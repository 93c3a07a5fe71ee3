// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file has the store as it was at the start. It appears when it is complete, and never overwrites a file or follows a
// link.

import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, lstatSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command } from "./command.ts";
import { checkRow, warningOf } from "./lines.ts";
import { readLines, type Store } from "./wrangler-store.ts";

// Readable only by its owner, because it has Idempotency-Keys.
const MODE = 0o600;
const MOST_FAULTS = 10;

/**
 * Returns what was saved, and which rows a restore of the file would reject, or "": rows that only SQL can have stored.
 * Throws with a message for the operator.
 */
export async function save(store: Store, file: string): Promise<{ saved: string; rejected: string }> {
  if (lstatSync(file, { throwIfNoEntry: false }))
    throw new Error(`${file} already exists, and a backup never overwrites anything. Name a different file.`);
  // Throws if the folder does not exist.
  const partial = join(realpathSync(dirname(file)), `backup-${randomUUID()}.partial`);
  const output = openSync(partial, "wx", MODE);
  process.once("exit", () => rmSync(partial, { force: true }));
  const faults: string[] = [];
  let total = 0;
  let last = 0n;
  for await (const { id, text } of readLines(store)) {
    writeFileSync(output, `${text}\n`);
    const row = checkRow(Buffer.from(text));
    if (typeof row === "string" && faults.length < MOST_FAULTS) faults.push(`id ${id}: ${row}`);
    total++;
    last = id;
  }
  fsyncSync(output);
  closeSync(output);
  // An empty file reserves the name, and is then replaced: not every file system has hard links. Throws if the name is
  // taken. SIGKILL can leave the empty file.
  closeSync(openSync(file, "wx", MODE));
  renameSync(partial, file);
  const saved = `Saved ${store.environment} in ${file}: ${total} lines.${warningOf(last)}`;
  if (faults.length === 0) return { saved, rejected: "" };
  const title = "A restore rejects some of them, which only SQL can have stored. The first ones are:";
  return { saved, rejected: [title, ...faults, 'Correct them: "One wrong animal" in docs/OPERATIONS.md.'].join("\n") };
}

/** Returns the text to end with. Throws with a message for the operator. */
export async function backup(store: Store, file: string): Promise<string> {
  const { saved, rejected } = await save(store, file);
  return rejected ? `${saved}\n${rejected}` : saved;
}

if (import.meta.main) await command("backup", backup, () => "Nothing was saved. Run the same command again.");
