// Loads a file into a store: `npm run restore -- <environment> <file>`. It fills an empty store, or continues one that
// is the beginning of the file, and never removes anything. D1's import may fail and store only some rows, so a file is
// loaded in parts, and after a failure a part is simply loaded again: rows that are there already are skipped. At the
// end everything is read back. What callers add meanwhile would take ids of the file, so it writes to an environment
// only while the service is closed.

import { command, ENVIRONMENT } from "./command.ts";
import { readFiles, select } from "./file.ts";
import { insertSql, readLines } from "./rows.ts";
import { openStore, type Store } from "./wrangler-store.ts";

// Characters of SQL, of up to 3 bytes. Imports of 5 MB have been seen to fail. Starting Wrangler takes a second.
const PART_LENGTH = 1_500_000;

/** Returns the text to end with. `length`: that of a part, in characters. Throws with a message for the operator. */
export async function restore(store: Store, file: string, length = PART_LENGTH): Promise<string> {
  const { environment, isLocal } = store;
  const database = await readFiles({ lines: file });
  const lines = (skipped = 0) => select(database, `SELECT line FROM lines ORDER BY id LIMIT -1 OFFSET ${skipped}`);
  const [count] = select(database, "SELECT count(*) FROM lines");
  const total = Number(count);
  if (total === 0) throw new Error(`${file} is empty. Name a file with at least one animal.`);
  const restored = `Restored ${environment} from ${file}: ${total} lines, read back and identical.`;
  const end = (hasMore: boolean) =>
    hasMore ? `${restored}\n${environment} also has newer animals. They stay.` : restored;

  const before = await compare(store, lines());
  if (before.equal === total) return end(before.hasMore);
  if (before.hasMore) throw new Error(refusal(store, before.equal + 1));
  await requireClosed(store, "Nothing was changed.");
  if (!isLocal) {
    console.log(`The bookmark of ${environment} before this restore: ${await store.bookmark()}
To take the restore back, use it in "Return to an earlier state" in docs/OPERATIONS.md. If you run this command several
times, use the first one.`);
  }
  await load(store, lines(before.equal), length);
  await requireClosed(store, "The restore did not finish.");
  const after = await compare(store, lines());
  if (after.equal === total) return end(after.hasMore);
  throw new Error(`Verification failed: ${environment} differs from the file at line ${after.equal + 1}.
Something else has changed one of them. Run the same command again.`);
}

/** How many lines are equal to the first rows, and whether there are more rows. */
async function compare(store: Store, lines: Iterator<string>) {
  let equal = 0;
  for await (const row of readLines(store)) {
    if (row !== lines.next().value) return { equal, hasMore: true };
    equal++;
  }
  return { equal, hasMore: false };
}

async function load(store: Store, lines: Iterable<string>, length: number): Promise<void> {
  let part = "";
  for (const statement of insertSql(lines)) {
    part += statement;
    if (part.length < length) continue;
    await store.load(part);
    part = "";
  }
  if (part) await store.load(part);
}

/** A local service is the operator's own. */
async function requireClosed({ environment, isLocal, isClosed }: Store, state: string): Promise<void> {
  if (isLocal || (await isClosed())) return;
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
