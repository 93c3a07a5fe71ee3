// Loads a file into an empty store: `npm run restore -- <environment> <file>`. D1's import fails for large files and may store
// only some rows, so a file is loaded in parts. Each starts with a guard that fails unless the lines before are stored and
// nothing else. After any failure, what is stored decides how to continue, in the same run or in the next one. The smoke test's
// animal at the end of a store is not data, because the next deployment adds it again: a part removes it.

import { SMOKE_TEST } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { command, progress } from "./command.ts";
import { type Connection, checkColumns, Failure, readLines, TRIES } from "./connection.ts";
import { type Input, isSmokeTest, readInput } from "./input.ts";
import { insertSql, type Line } from "./lines.ts";

// Imports of 5 MB have been seen to fail. Starting Wrangler takes a second.
const PART_BYTES = 2_500_000;

// Statements of 60,000 bytes have been seen to work. This leaves room for what surrounds the lines.
const STATEMENT_BYTES = 59_500;

/** The first lines of a file, as far as the store has them: how many, and the id of the last one. */
interface Stored {
  count: number;
  last?: bigint | undefined;
}

/** Returns the line to end with. `partBytes`: about the size of an import. Throws Failure and WranglerFailed. */
export async function restore(store: Connection, file: string, partBytes = PART_BYTES): Promise<string> {
  const { environment } = store;
  const input = await readInput(file);
  await checkColumns(store);
  const start = await findStart(store, input, { count: 0 });
  if (start.count > 0) console.log(`${environment} already has the first ${start.count} of ${input.total} lines.`);
  if (start.count < input.total) {
    if (!store.isLocal) console.log(await warning(store, start));
    await loadRest(store, input, start, partBytes);
    await verify(store, input);
  }
  return `Restored ${environment} from ${file}: ${input.total} lines, read back and identical.`;
}

/** How many lines the store has, if it is known to have some. Throws a Failure if it has anything else. */
async function findStart(store: Connection, input: Input, known: Stored): Promise<Stored> {
  const { other, ...stored } = await compare(store, input, known);
  if (!other) return stored;
  throw new Failure(`${store.environment} is not empty, and differs from the file at line ${stored.count + 1}.
A restore fills an empty store, or continues one that did not finish. See "Back up and restore" in docs/OPERATIONS.md.`);
}

/** Stores the lines that are missing, each exactly once, even if imports fail after they stored some or all of theirs. */
async function loadRest(store: Connection, input: Input, stored: Stored, partBytes: number): Promise<void> {
  for (let failures = 0; stored.count < input.total; ) {
    try {
      for (const part of batches(input.after(stored.last), partBytes)) {
        await store.load(importSql(part, stored));
        stored = { count: stored.count + part.length, last: part.at(-1)?.id };
        failures = 0;
        progress(`stored ${stored.count} of ${input.total} lines`);
      }
    } catch (failure) {
      if (!(failure instanceof WranglerFailed)) throw failure;
      const { count } = stored;
      stored = await findStart(store, input, stored);
      failures = stored.count > count ? 0 : failures + 1;
      if (failures === TRIES) throw failure;
      await store.wait(failures);
    }
  }
}

/** Throws a Failure unless the store has all lines. Callers may have added animals since. */
async function verify(store: Connection, input: Input): Promise<void> {
  const { count } = await compare(store, input, { count: 0 });
  if (count === input.total) return;
  throw new Failure(`Verification failed: ${store.environment} differs from the file at line ${count + 1}.`);
}

/** Compares rows with lines after those that are known. `other`: the row that differs from the next line. */
async function compare(store: Connection, input: Input, known: Stored): Promise<Stored & { other: Line | undefined }> {
  let { count, last } = known;
  const rows = readLines(store, last);
  let { value: other } = await rows.next();
  for (const line of input.after(last)) {
    if (other?.text !== line.text) break;
    last = line.id;
    if (++count % 10_000 === 0) progress(`compared ${count} of ${input.total} lines`);
    ({ value: other } = await rows.next());
  }
  if (other && isSmokeTest(other)) ({ value: other } = await rows.next());
  return { count, last, other };
}

/** What to know before the store is changed. */
async function warning({ environment, bookmark }: Connection, { count }: Stored): Promise<string> {
  const lines = count > 0 ? `, with those ${count} lines` : "";
  return `Callers get 503 while ${environment} is restored. To return to the state before this run${lines}:
npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await bookmark()}`;
}

function* importSql(part: Line[], { last = 0n }: Stored): Generator<string> {
  const isSmokeTest = `idempotency_key IS '${SMOKE_TEST.key}' AND name = '${SMOKE_TEST.pet.name}' AND id > ${last}`;
  const greatest = `SELECT coalesce(max(id), 0) FROM pets WHERE NOT (${isSmokeTest})`;
  // json() fails for text that is not JSON.
  yield `SELECT json(iif((${greatest}) = ${last}, 'null', 'The store has changed.'));\n`;
  yield `DELETE FROM pets WHERE ${isSmokeTest};\n`;
  yield* batches(part, STATEMENT_BYTES).map(insertSql);
}

/** Groups lines, at most `most` bytes together. */
function* batches(lines: Iterable<Line>, most: number): Generator<Line[]> {
  let [batch, bytes]: [Line[], number] = [[], 0];
  for (const line of lines) {
    const size = Buffer.byteLength(line.text) + 1;
    if (batch.length > 0 && bytes + size > most) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(line);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

const AGAIN = "It did not finish. Run the same command again: it continues where it stopped.";
if (import.meta.main) await command("restore", restore, AGAIN);
