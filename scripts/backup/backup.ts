// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file contains the store as it was at the start.

import { command, ENVIRONMENT } from "./command.ts";
import { createFile } from "./file.ts";
import { readLines } from "./rows.ts";
import { openStore, type Store } from "./wrangler-store.ts";

/** Returns the text to end with. Throws with a message for the operator. */
export async function backup(store: Store, file: string): Promise<string> {
  return `Saved ${store.environment} in ${file}: ${await createFile(file, readLines(store))} lines.`;
}

if (import.meta.main) {
  const work = async (environment: string, file: string) => backup(await openStore(environment), file);
  await command(`npm run backup -- ${ENVIRONMENT} <file>`, work, "Nothing was saved. Run the same command again.");
}
