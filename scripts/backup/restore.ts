// Loads a file into an empty store: `npm run restore -- <environment> <file>`. D1's import fails for large files and is not
// a transaction, so a file is loaded in parts. Each starts with a guard that fails unless the part before is stored and
// nothing else; after a failure, what is stored decides. The same command continues a restore that did not finish.

import { SMOKE_TEST } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { command, progress } from "./command.ts";
import { readInput } from "./input.ts";
import { type Line, loadSql, storedLine } from "./lines.ts";
import { checkTables, type Extent, Failure, readExtent, readStore, type Store, TRIES } from "./store.ts";
import { TABLES } from "./tables.ts";

// Imports of 5 MB have been seen to fail. Starting Wrangler takes a second.
const PART_BYTES = 2_500_000;

// D1 accepts a statement of at most 100,000 bytes; this leaves room for what surrounds the lines.
const STATEMENT_BYTES = 95_000;

// The smoke test's animal does not count as data: the next deployment adds it again.
const { key, pet } = SMOKE_TEST;
const ONLY_SMOKE_TEST = `FROM pets WHERE idempotency_key = '${key}' AND name = '${pet.name}' AND status = '${pet.status}'
  AND category_id = ${pet.categoryId} AND (SELECT min(id) FROM pets) = (SELECT max(id) FROM pets)`;

/** Returns the line to end with. `partBytes`: about the size of an import. Throws Failure and WranglerFailed. */
export async function restore(store: Store, file: string, partBytes = PART_BYTES): Promise<string> {
  const { environment } = store;
  let total = 0;
  for await (const _ of readInput(file)) if (++total % 10_000 === 0) progress(`checked ${total} lines`);
  if (total === 0) throw new Failure(`${file} is empty.`);

  await checkTables(store);
  let extent = await readExtent(store);
  let lines = readInput(file);
  let { equal, count } = await compare(store, extent, lines);
  const [smokeTest = []] = equal || extent.size > 1 ? [] : await store.query(() => [`SELECT id ${ONLY_SMOKE_TEST}`]);
  if (!equal && smokeTest.length === 0) {
    throw new Failure(`${environment} is not empty, and differs from ${file} at line ${count + 1}.
A restore fills an empty store, or continues one that did not finish. See "Back up and restore" in docs/OPERATIONS.md.`);
  }
  if (count > 0) console.log(`${environment} already has the first ${count} of ${total} lines.`);
  if (count < total) {
    console.log(
      store.isLocal
        ? "To empty the local store again, stop the service and remove .wrangler/state."
        : `Callers get 503 while ${environment} is restored. To return to the state before this run${count > 0 ? `, with those ${count} lines` : ""}:
npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await store.bookmark()}`,
    );
    if (!equal) {
      await store.query(() => [`DELETE ${ONLY_SMOKE_TEST}`]);
      [extent, lines] = [new Map(), readInput(file)];
    }
    for await (const part of batches(lines, partBytes)) {
      extent = await load(store, part, extent);
      progress(`stored ${part.at(-1)?.table.name} up to id ${part.at(-1)?.id}`);
    }
    lines = readInput(file);
    ({ equal, count } = await compare(store, extent, lines));
    if (!equal || !(await lines.next()).done) {
      throw new Failure(`Verification failed: ${environment} differs from ${file} at line ${count + 1}.`);
    }
  }
  return `Restored ${environment} from ${file}: ${total} lines, read back and identical.`;
}

/** Compares the store with the lines, as far as the store goes. Returns how many lines are equal. */
async function compare(store: Store, extent: Extent, lines: AsyncGenerator<Line>) {
  let count = 0;
  for await (const page of readStore(store, extent)) {
    for (const text of page.lines) {
      const { value, done } = await lines.next();
      if (done || value.text !== storedLine(text).text) return { equal: false, count };
      count++;
    }
    progress(`compared ${page.reached}`);
  }
  return { equal: true, count };
}

/** Groups lines for the same table, at most `most` bytes together. */
async function* batches(lines: AsyncIterable<Line> | Line[], most: number): AsyncGenerator<Line[]> {
  let [batch, bytes]: [Line[], number] = [[], 0];
  for await (const line of lines) {
    const size = Buffer.byteLength(line.text) + 1;
    if (batch[0] && (batch[0].table !== line.table || bytes + size > most)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(line);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Stores a part exactly once, even if an import fails after it stored everything. Returns how far the store goes then. */
async function load(store: Store, part: Line[], before: Extent): Promise<Extent> {
  const { table, id } = part.at(-1) as Line;
  const after: Extent = new Map([...before, [table, id]]);
  const guard = TABLES.map((table) => `(SELECT max(id) FROM ${table.name}) IS ${before.get(table) ?? "NULL"}`);
  // json() fails for text that is not JSON.
  let sql = `SELECT json(iif(${guard.join(" AND ")}, 'null', 'The store has changed.'));\n`;
  for await (const lines of batches(part, STATEMENT_BYTES)) sql += loadSql(table, lines);
  for (let failures = 0; ; failures++) {
    try {
      await store.load(sql);
      return after;
    } catch (failure) {
      if (!(failure instanceof WranglerFailed)) throw failure;
      const stored = await readExtent(store);
      if (isSame(stored, after)) return after;
      if (failures + 1 < TRIES) await store.wait(failures);
      else if (isSame(stored, before)) throw failure;
      else throw new Failure(`Something else has changed ${store.environment} during the restore.`);
    }
  }
}

const isSame = (a: Extent, b: Extent) => TABLES.every((table) => a.get(table) === b.get(table));

if (import.meta.main) await command("restore", restore);
