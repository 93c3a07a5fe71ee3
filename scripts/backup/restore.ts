// Loads a file into a store: `npm run restore -- <environment> <file>`. It fills an empty store, or continues one that
// is the beginning of the file, and never removes anything. D1's import may fail and store only some rows, so a file is
// loaded in parts, and after a failure a part is simply loaded again: rows that are there already are skipped. At the
// end everything is read back, which finds whatever was in the way.

import { command } from "./command.ts";
import { type Input, readInput } from "./input.ts";
import { insertSql } from "./lines.ts";
import { readLines, type Store } from "./wrangler-store.ts";

// Characters of SQL, of up to 3 bytes. Imports of 5 MB have been seen to fail. Starting Wrangler takes a second.
const PART_LENGTH = 1_500_000;

/** Returns the text to end with. `length`: that of a part, in characters. Throws with a message for the operator. */
export async function restore(store: Store, file: string, length = PART_LENGTH): Promise<string> {
  const { environment, isLocal } = store;
  const input = await readInput(file);
  let { count, other } = await compare(store, input);
  if (count < input.total) {
    if (other) {
      throw new Error(`${environment} is not empty, and differs from the file at line ${count + 1}. Nothing was changed.
A restore fills an empty store, or continues one that did not finish.
${await howToReplace(store)}`);
    }
    if (!isLocal) {
      console.log(`Callers get 503 while ${environment} is restored. To return to the state before this run (after an
interrupted one, use the bookmark that the first run printed):
${timeTravel(environment, await store.bookmark())}`);
    }
    await loadLines(store, input.lines(count), length);
    ({ count, other } = await compare(store, input));
  }
  if (count < input.total) {
    const goBack = isLocal ? EMPTY_LOCAL : `${CLOSE}, and return to the bookmark above`;
    throw new Error(`Verification failed: ${environment} differs from the file at line ${count + 1}.
Something else writes to it. To repeat the restore, ${goBack}. ${AGAIN}`);
  }
  const restored = `Restored ${environment} from ${file}: ${input.total} lines, read back and identical.`;
  if (!other) return restored;
  return `${restored}\n${environment} also has animals with greater ids.\n${await howToReplace(store)}`;
}

/** Compares rows with lines: how many are equal, and the row that follows them, if any. */
async function compare(store: Store, input: Input) {
  let count = 0;
  const rows = readLines(store);
  let { value: other } = await rows.next();
  for (const line of input.lines()) {
    if (other !== line) break;
    count++;
    ({ value: other } = await rows.next());
  }
  return { count, other };
}

async function loadLines({ load }: Store, lines: Iterable<string>, length: number): Promise<void> {
  let part = "";
  for (const statement of insertSql(lines)) {
    part += statement;
    if (part.length < length) continue;
    await load(part);
    part = "";
  }
  if (part) await load(part);
}

const AGAIN = "Then run this command again.";
const CLOSE = 'close the service ("Close the service" in docs/OPERATIONS.md)';
const EMPTY_LOCAL = "stop npm run dev, and remove .wrangler/state";
const timeTravel = (environment: string, bookmark: string) =>
  `npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${bookmark}`;

/** What the operator does to have only the animals of the file. */
async function howToReplace({ environment, isLocal, isClosed, bookmark }: Store): Promise<string> {
  const replace = `To replace the animals of ${environment} with those of the file`;
  if (isLocal) return `${replace}, ${EMPTY_LOCAL}. ${AGAIN}`;
  if (!(await isClosed())) {
    return `${replace}, ${CLOSE}:
npx wrangler secret put MAINTENANCE --env ${environment}
${AGAIN}`;
  }
  return `${replace}, save them first ("Replace a store" in docs/OPERATIONS.md).
Keep this command, which takes everything back:
${timeTravel(environment, await bookmark())}
Remove all animals (this does not ask):
npx wrangler d1 execute DB --env ${environment} --remote --command "DELETE FROM pets"
${AGAIN}`;
}

if (import.meta.main) await command("restore", restore, "It did not finish. Run the same command again.");
