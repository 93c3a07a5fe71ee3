// Saves a store in a file, one animal per line: `npm run backup -- <environment> <file>`. Callers can keep writing: the
// file contains the store as it was at the start, because ids increase and rows never change.

import { command, ENVIRONMENT } from "./command.ts";
import { createFile } from "./file.ts";
import { parseLine } from "./lines.ts";
import { ROW_JSON, readLines } from "./rows.ts";
import { openStore, type Store } from "./wrangler-store.ts";

/** Returns the text to end with. Throws with a message for the operator. */
export async function backup(store: Store, file: string): Promise<string> {
  return `Saved ${store.environment} in ${file}: ${await createFile(file, readStore(store))} lines.`;
}

/** The lines of the store as it is now. Throws if it is replaced meanwhile: if its first or last row changes. */
async function* readStore(store: Store): AsyncGenerator<string> {
  const firstAnd = (last: bigint | string) =>
    store.query(`SELECT ${ROW_JSON} FROM pets WHERE id IN ((SELECT min(id) FROM pets), ${last}) ORDER BY pets.id`);
  const atStart = await firstAnd("(SELECT max(id) FROM pets)");
  const newest = atStart.at(-1);
  if (newest === undefined) return;
  const last = parseLine(newest).id;
  yield* readLines(store, last);
  if ((await firstAnd(last)).join() === atStart.join()) return;
  throw new Error(`Something else has changed or removed animals of ${store.environment} meanwhile.
Run the same command again.`);
}

if (import.meta.main) {
  const work = async (environment: string, file: string) => backup(await openStore(environment), file);
  await command(`npm run backup -- ${ENVIRONMENT} <file>`, work, "Nothing was saved. Run the same command again.");
}
