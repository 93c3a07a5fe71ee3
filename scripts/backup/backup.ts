// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file has the store as it was at the start.

import { command } from "./command.ts";
import { saveFile } from "./file.ts";
import { readRows, type Store } from "./wrangler-store.ts";

/** Returns the text to end with. Throws with a message for the operator. */
export async function backup(store: Store, file: string): Promise<string> {
  return `Saved ${store.environment} in ${file}: ${await saveFile(file, readRows(store))} lines.`;
}

if (import.meta.main) await command("backup", backup, "Nothing was saved. Run the same command again.");
