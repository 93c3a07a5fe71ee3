// Loads a file into an empty store: `npm run restore -- <environment> <file>`. D1's import fails for large files and may store
// only some rows, so a file is loaded in parts. Each starts with a guard that fails unless the lines before are stored and
// nothing else. After any failure, what is stored decides how to continue, in the same run or in the next one. The smoke test's
// animal at the end of a store is not data, because the next deployment adds it again: a part removes it.

import { SMOKE_TEST } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { command } from "./main.ts";
import { type Connection, checkColumns, readLines, TRIES } from "./connection.ts";
import { type Input, isSmokeTest, readInput } from "./input.ts";
import { Failure, insertSql, type Line } from "./lines.ts";

// Of SQL. Imports of 5 MB have been seen to fail, and starting Wrangler for each takes a second.
const PART_BYTES = 2_500_000;

/** The first lines of a file, as far as the store has them: how many, and the id of the last one. */
type Stored = { count: number; last?: bigint | undefined };

/** Returns the line to end with. `partBytes`: the size of an import. Throws Failure and WranglerFailed. */
export async function restore(store: Connection, file: string, partBytes = PART_BYTES): Promise<string> {
  const { environment } = store;
  const input = await readInput(file);
  await checkColumns(store);
  const start = await findStart(store, input, { count: 0 });
  if (start.count > 0) console.log(`${environment} already has the first ${start.count} of ${input.total} lines.`);
  if (start.count < input.total) {
    if (!store.isLocal) {
      console.log(`Callers get 503 while ${environment} is restored. To return to the state before this run:
npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await store.bookmark()}`);
    }
    await loadRest(store, input, start, partBytes);
    // Callers may have added animals since, so only the lines count.
    const { count } = await compare(store, input, { count: 0 });
    if (count < input.total) throw new Failure(`Verification failed: ${environment} differs at line ${count + 1}.`);
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
  let failures = 0;
  while (stored.count < input.total) {
    const { count, last } = stored;
    const part = takePart(input.after(last), partBytes);
    try {
      await store.load(importSql(part, last));
      stored = { count: count + part.length, last: part.at(-1)?.id };
      failures = 0;
    } catch (failure) {
      if (!(failure instanceof WranglerFailed)) throw failure;
      stored = await findStart(store, input, stored);
      if (++failures === TRIES) throw failure;
      await store.wait(failures);
    }
  }
}

/** Compares rows with lines after those that are known. `other`: the row that differs from the next line. */
async function compare(store: Connection, input: Input, known: Stored): Promise<Stored & { other: Line | undefined }> {
  let { count, last } = known;
  const rows = readLines(store, last);
  let { value: other } = await rows.next();
  for (const line of input.after(last)) {
    if (other?.text !== line.text) break;
    last = line.id;
    count++;
    ({ value: other } = await rows.next());
  }
  if (other && isSmokeTest(other)) ({ value: other } = await rows.next());
  return { count, last, other };
}

/** The next lines, as many as fit in an import. */
function takePart(lines: Iterable<Line>, most: number): Line[] {
  const part: Line[] = [];
  let bytes = 0;
  for (const line of lines) {
    bytes += Buffer.byteLength(insertSql(line));
    if (part.length > 0 && bytes > most) break;
    part.push(line);
  }
  return part;
}

function importSql(part: Line[], last = 0n): string {
  const isSmokeTest = `idempotency_key IS '${SMOKE_TEST.key}' AND name = '${SMOKE_TEST.pet.name}' AND id > ${last}`;
  const greatest = `SELECT coalesce(max(id), 0) FROM pets WHERE NOT (${isSmokeTest})`;
  // json() fails for text that is not JSON.
  return `SELECT json(iif((${greatest}) = ${last}, 'null', 'The store has changed.'));
DELETE FROM pets WHERE ${isSmokeTest};
${part.map(insertSql).join("")}`;
}

if (import.meta.main) await command("restore", restore, "It did not finish. Run the same command again to continue.");
