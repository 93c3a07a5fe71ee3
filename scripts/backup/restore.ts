// Loads a file into a store: `npm run restore -- <environment> <file>`. It fills an empty store, or continues one that
// is the beginning of the file, and never removes anything. D1's import may fail and store only some rows, so a file is
// loaded in parts, and after a failure a part is simply loaded again: rows that are there already are skipped. At the
// end everything is read back. What callers add meanwhile could take the ids of the file, so in an environment it only
// writes while the service is closed.

import { command } from "./command.ts";
import { checkFile, readLines } from "./file.ts";
import { insertSql } from "./lines.ts";
import { readRows, type Store } from "./wrangler-store.ts";

// Characters of lines, of up to 3 bytes. Imports of 5 MB have been seen to fail. Starting Wrangler takes a second.
const PART_LENGTH = 1_400_000;

/** Returns the text to end with. `length`: that of a part, in characters. Throws with a message for the operator. */
export async function restore(store: Store, file: string, length = PART_LENGTH): Promise<string> {
  const { environment } = store;
  const { total } = await checkFile(file);
  let { count, other } = await compare(store, file);
  if (count < total) {
    if (other) throw new Error(differs(store, count + 1));
    if (!store.isLocal) {
      await requireClosed(store);
      console.log(`To return to the state before this run (after an interrupted one, use the bookmark that the first run
printed): npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await store.bookmark()}`);
    }
    await load(store, file, count, length);
    if (!store.isLocal) await requireClosed(store);
    ({ count, other } = await compare(store, file));
    if (count < total) throw new Error(`Verification failed. ${differs(store, count + 1)}`);
  }
  const restored = `Restored ${environment} from ${file}: ${total} lines, read back and identical.`;
  return other ? `${restored}\n${environment} also has newer animals, which stay.` : restored;
}

/** Compares rows with lines: how many are equal, and the row that follows them, if any. */
async function compare(store: Store, file: string) {
  let count = 0;
  const rows = readRows(store);
  let { value: other } = await rows.next();
  for await (const { text } of readLines(file)) {
    if (other !== text) break;
    count++;
    ({ value: other } = await rows.next());
  }
  return { count, other };
}

/** Loads the lines after the first `skipped` ones. */
async function load(store: Store, file: string, skipped: number, length: number): Promise<void> {
  let part: string[] = [];
  let size = 0;
  let count = 0;
  for await (const { text } of readLines(file)) {
    if (count++ < skipped) continue;
    part.push(text);
    size += text.length;
    if (size < length) continue;
    await store.load([...insertSql(part)].join(""));
    [part, size] = [[], 0];
  }
  if (part.length > 0) await store.load([...insertSql(part)].join(""));
}

async function requireClosed({ environment, isClosed }: Store): Promise<void> {
  if (await isClosed()) return;
  throw new Error(`The service in ${environment} is not closed: what callers add could get in the way of the restore.
"Close the service" in docs/OPERATIONS.md: npx wrangler secret put MAINTENANCE --env ${environment}
Then run the same command again.`);
}

function differs({ environment, isLocal }: Store, line: number): string {
  const replace = isLocal
    ? "stop npm run dev, remove .wrangler/state, and run the same command again"
    : 'see "Replace a store" in docs/OPERATIONS.md';
  return `${environment} is not empty, and differs from the file at line ${line}. A restore never removes anything: it
fills an empty store, or continues one that is the beginning of the file. To replace the store, ${replace}.`;
}

if (import.meta.main) await command("restore", restore, "It did not finish. Run the same command again.");
