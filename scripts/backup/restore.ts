// Loads a file into a store: `npm run restore -- <environment> <file>`. It fills an empty store, or continues one that
// is the beginning of the file, and never removes anything. D1's import may fail and store only some rows, so a file is
// loaded in parts, and after a failure a part is simply loaded again: rows that are there already are skipped. At the
// end everything is read back. What callers add meanwhile would take ids of the file, so it writes to an environment
// only while the service is closed.

import { printJson } from "../../src/values/json.ts";
import { command, ENVIRONMENT } from "./command.ts";
import { checkFile, readRows } from "./file.ts";
import { insertSql, readLines } from "./rows.ts";
import { openStore, type Store } from "./wrangler-store.ts";

// Characters of lines, of up to 3 bytes. Imports of 5 MB have been seen to fail. Starting Wrangler takes a second.
const PART_LENGTH = 1_400_000;

/** Returns the text to end with. `length`: that of a part, in characters. Throws with a message for the operator. */
export async function restore(store: Store, file: string, length = PART_LENGTH): Promise<string> {
  const { environment, isLocal } = store;
  const { last } = await checkFile(file);
  if (last === 0n) throw new Error(`${file} is empty. Name a file with at least one animal.`);
  let { count, isWhole, other } = await compare(store, file);
  if (!isWhole) {
    if (other) throw new Error(refusal(store, count + 1));
    if (!isLocal) {
      await requireClosed(store, "Nothing was changed.");
      console.log(`The bookmark of ${environment} before this restore: ${await store.bookmark()}
To take the restore back, use it in "Return to an earlier state" in docs/OPERATIONS.md. If you run this command several
times, use the first one.`);
    }
    await load(store, file, count, length);
    if (!isLocal) await requireClosed(store, "The restore did not finish.");
    ({ count, isWhole, other } = await compare(store, file));
    if (!isWhole) {
      throw new Error(`Verification failed: ${environment} differs from the file at line ${count + 1}.
Something else has changed one of them. Run the same command again.`);
    }
  }
  const restored = `Restored ${environment} from ${file}: ${count} lines, read back and identical.`;
  return other ? `${restored}\n${environment} also has newer animals. They stay.` : restored;
}

/** How many lines are equal to rows, whether these are all lines, and the row that follows them, if any. */
async function compare(store: Store, file: string) {
  let count = 0;
  const lines = readLines(store);
  let { value: other } = await lines.next();
  for await (const row of readRows(file)) {
    if (other !== printJson(row)) return { count, isWhole: false, other };
    count++;
    ({ value: other } = await lines.next());
  }
  return { count, isWhole: true, other };
}

/** Loads the lines after the first `skipped` ones. */
async function load(store: Store, file: string, skipped: number, length: number): Promise<void> {
  let [part, size, count]: [string[], number, number] = [[], 0, 0];
  for await (const row of readRows(file)) {
    if (count++ < skipped) continue;
    const line = printJson(row);
    part.push(line);
    size += line.length;
    if (size < length) continue;
    await store.load(insertSql(part));
    [part, size] = [[], 0];
  }
  if (size > 0) await store.load(insertSql(part));
}

async function requireClosed({ environment, isClosed }: Store, state: string): Promise<void> {
  if (await isClosed()) return;
  throw new Error(`The service of ${environment} is not closed: callers could add animals with ids of the file. ${state}
"Close the service" in docs/OPERATIONS.md: npx wrangler secret put MAINTENANCE --env ${environment}
Then run the same command again.`);
}

function refusal({ environment, isLocal }: Store, line: number): string {
  const how = isLocal
    ? "stop npm run dev, remove .wrangler/state, and run the same command again"
    : '"Replace a store" in docs/OPERATIONS.md';
  return `${environment} is not empty, and differs from the file at line ${line}. Nothing was changed.
A restore fills an empty store, or continues one that is the beginning of the file.
To replace the animals of ${environment}: ${how}.`;
}

if (import.meta.main) {
  const work = async (environment: string, file: string) => restore(await openStore(environment), file);
  await command(`npm run restore -- ${ENVIRONMENT} <file>`, work, "It did not finish. Run the same command again.");
}
