// Adds to the backup of an earlier state what it lacks from that of a later one: `npm run merge -- <then> <now> <out>`.
// A database that was returned to the earlier state is the beginning of `out`, so a restore continues it. That is why
// an animal keeps its id only if it is greater than all ids of `then`: a smaller one would be in between, even if it is
// free. Animals are the same if their id, caller and time are the same, or if they have neither caller nor time.

import { printJson } from "../../src/values/json.ts";
import { command } from "./command.ts";
import { checkFile, createFile, readRows } from "./file.ts";
import type { Row } from "./lines.ts";

/** Returns the text to end with. Throws with a message for the operator. */
export async function merge(then: string, now: string, out: string): Promise<string> {
  const { last, keys } = await checkFile(then);
  let { last: greatest } = await checkFile(now);
  if (greatest < last) greatest = last;
  const [onlyThen, onlyNow, newer, changed] = [newCount(), newCount(), newCount(), newCount()];
  const [leftOut, newIds]: [string[], string[]] = [[], []];

  async function* lines(): AsyncGenerator<string> {
    for await (const [old, row] of join(then, now)) {
      if (old) yield printJson(old);
      if (old && row && printJson(old) !== printJson(row)) changed.add(row);
      if (old && !row) onlyThen.add(old);
      if (old || !row) continue;
      (row.id > last ? newer : onlyNow).add(row);
      const owner = keys.ownerOf(row);
      if (owner) leftOut.push(`${row.id} ${owner}`);
      else if (row.id > last) yield printJson(row);
    }
    // Again, because the new ids come after all others, and there may be too many of these animals for memory.
    for await (const [old, row] of join(then, now)) {
      if (old || !row || row.id > last || keys.ownerOf(row)) continue;
      newIds.push(`${row.id} ${++greatest}`);
      yield printJson({ ...row, id: greatest });
    }
  }

  const total = await createFile(out, lines());
  const list = (title: string, pairs: string[]) => (pairs.length > 0 ? [title, ...pairs] : []);
  return [
    ...list(`Not added, because ${then} has their Idempotency-Key: the id in ${now}, and the one in ${then}`, leftOut),
    ...list(`Added with a new id: the id in ${now}, and the new one`, newIds),
    `Only in ${then}: ${onlyThen}`,
    `Only in ${now}: ${onlyNow}`,
    `Newer, only in ${now}: ${newer}`,
    `In both, with different values: ${changed}. ${out} has those of ${then}.`,
    `Saved ${out}: ${total} lines.`,
  ].join("\n");
}

/** The animals of two files in ascending order of id: those in both as pairs, others with undefined. */
async function* join(then: string, now: string): AsyncGenerator<[Row | undefined, Row | undefined]> {
  const [olds, rows] = [readRows(then), readRows(now)];
  let [{ value: old }, { value: row }] = [await olds.next(), await rows.next()];
  while (old || row) {
    const isSame = old?.id === row?.id && old?.createdBy === row?.createdBy && old?.createdAt === row?.createdAt;
    const isOldNext = !row || (old && old.id <= row.id);
    yield isSame ? [old, row] : isOldNext ? [old, undefined] : [undefined, row];
    if (isSame || !isOldNext) ({ value: row } = await rows.next());
    if (isOldNext) ({ value: old } = await olds.next());
  }
}

/** A number of animals, and the range of their ids. */
function newCount() {
  let [count, first, last] = [0, 0n, 0n];
  return {
    add({ id }: Row): void {
      if (count++ === 0) first = id;
      last = id;
    },
    toString: () => ["0", `1 (id ${first})`][count] ?? `${count} (ids ${first} to ${last})`,
  };
}

if (import.meta.main) {
  const next = "Nothing was saved. Run the same command again.";
  await command("npm run merge -- <then.jsonl> <now.jsonl> <out.jsonl>", merge, next);
}
