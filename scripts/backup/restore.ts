// Loads a file into a store: `npm run restore -- <environment> <file>`. D1's import may fail and store only some rows,
// so a file is loaded in parts, and after a failure a part is simply loaded again: rows that are there already are
// skipped. At the end everything is read back, which finds whatever was in the way. The removal of --replace is
// different, because ids start at 1 again after it: it fails unless everything that it would remove is saved.

import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { save } from "./backup.ts";
import { command } from "./command.ts";
import { type Input, readInput } from "./input.ts";
import { insertSql, type Line, ROW_JSON, warningOf } from "./lines.ts";
import { readLines, type Store } from "./wrangler-store.ts";

// Characters of SQL, of up to 3 bytes. Imports of 5 MB have been seen to fail, and starting Wrangler for each takes a
// second.
const PART_LENGTH = 1_500_000;

/**
 * Returns the text to end with. `replace`: whether to replace what is there if it is not the beginning of the file.
 * `length`: that of a part, in characters. Throws with a message for the operator.
 */
export async function restore(store: Store, file: string, replace = false, length = PART_LENGTH): Promise<string> {
  const { environment } = store;
  // Not of what a link leads to: /dev/stdin is a link.
  if (replace && !lstatSync(file).isFile())
    throw new Error(`${file} is not a regular file, next to which --replace can save what is there. Copy it into one.`);
  // Callers would be answered from a store that is half gone.
  if (replace && !store.isLocal && !(await store.isClosed())) {
    throw new Error(`--replace works only while ${environment} is closed ("Close the service" in docs/OPERATIONS.md).
To close it, run this command, and press Enter: npx wrangler secret put MAINTENANCE --env ${environment}`);
  }
  const input = await readInput(file);
  const warning = warningOf(input.last);
  const restored = `Restored ${environment} from ${file}: ${input.total} lines, read back and identical.${warning}`;
  const more = `\n${environment} also has animals with greater ids. To remove these, run the command with --replace.`;
  const done = (following: Line | undefined) => (following ? restored + more : restored);
  const { count, last, other } = await compare(store, input);
  if (other && !replace && count < input.total) {
    throw new Error(`${environment} is not empty, and differs from the file at line ${count + 1}.
A restore fills an empty store, or continues one that did not finish.
With --replace, it saves what is there, and replaces it.`);
  }
  if (count === input.total && !(other && replace)) return done(other);

  const watched = other ? await saveContents(store, file, other) : [];
  if (!store.isLocal) {
    console.log(`Callers get 503 while ${environment} is restored. To return to the state before this run (after an
interrupted one, use the bookmark that the first run printed):
npx wrangler d1 time-travel restore DB --env ${environment} --bookmark ${await store.bookmark()}`);
  }
  if (other) await removeContents(store, other, watched);
  else if (count > 0) console.log(`${environment} already has the first ${count} of ${input.total} lines.`);
  await loadLines(store, input.after(other ? undefined : last), length);
  const found = await compare(store, input);
  if (found.count === input.total) return done(found.other);
  throw new Error(`Verification failed: ${environment} differs from the file at line ${found.count + 1}.
Something else writes to it. Keep it out ("Close the service" in docs/OPERATIONS.md), and run this with --replace.`);
}

/** Compares rows with lines: how many are equal, the id of the last of them, and the row that follows it, if any. */
async function compare(store: Store, input: Input) {
  let [count, last]: [number, bigint | undefined] = [0, undefined];
  const rows = readLines(store);
  let { value: other } = await rows.next();
  for (const line of input.after()) {
    if (other?.text !== line.text) break;
    last = line.id;
    count++;
    ({ value: other } = await rows.next());
  }
  return { count, last, other };
}

async function loadLines({ load }: Store, lines: Iterable<Line>, length: number): Promise<void> {
  let part = "";
  for (const line of lines) {
    part += insertSql(line);
    if (part.length < length) continue;
    await load(part);
    part = "";
  }
  if (part) await load(part);
}

/**
 * The SQL that selects the rows that must not change between saving and removing: the newest, and the first one that
 * differs from the file, because a restore that has finished meanwhile may have the same newest row.
 */
const watchedSql = (other: Line, value = ROW_JSON) =>
  `SELECT ${value} FROM pets WHERE id IN (${other.id}, (SELECT max(id) FROM pets)) ORDER BY pets.id`;

/** Saves what is there. Returns the rows to watch. Throws if a restore of the copy would reject any row. */
async function saveContents(store: Store, file: string, other: Line): Promise<string[]> {
  // Read first, so that everything up to the newest row is saved.
  const watched = await store.query(watchedSql(other));
  const time = new Date().toISOString().replaceAll(/[:.]/g, "-");
  const { saved, rejected } = await save(store, join(dirname(file), `before-${store.environment}-${time}.jsonl`));
  if (rejected) throw new Error(`Nothing was removed, because it could not be restored.\n${saved}\n${rejected}`);
  console.log(saved);
  return watched;
}

/** Removes everything, unless something else has written since it was saved. Repeated, it finds nothing. */
async function removeContents({ environment, query, load }: Store, other: Line, watched: string[]): Promise<void> {
  const rows = await query(watchedSql(other));
  if (rows.length > 0 && rows.join() !== watched.join()) {
    throw new Error(`Something else has written to ${environment} since it was saved, and nothing was removed.
Run the same command again: it saves and replaces what is there now.`);
  }
  // The import compares again, because it may start later. In hexadecimal, because D1 takes a file apart at what looks
  // like SQL in a string. Rows that callers can store, and only these are removed, make this statement 30 KB long.
  const found = `SELECT group_concat(hex(text), '') FROM (${watchedSql(other, `${ROW_JSON} AS text`)})`;
  const saved = watched.map((row) => Buffer.from(row).toString("hex").toUpperCase()).join("");
  // In an empty store, the comparison is NULL, and nothing fails. json() fails for what is not JSON, which ends an
  // import. A DELETE without a condition truncates the table: 2,000,000 rows take 56 ms.
  await load(`SELECT json('The store has changed.') WHERE (${found}) <> '${saved}';\nDELETE FROM pets;\n`);
}

const next = (replace: boolean) =>
  replace
    ? `It did not finish. The same command completes it. To take it back: "Undo a restore" in docs/OPERATIONS.md.`
    : "It did not finish. Run the same command again.";

if (import.meta.main) await command("restore", restore, next, "--replace");
