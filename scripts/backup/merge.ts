// Completes the backup of an earlier state with what a later one has: `npm run merge -- <then> <now> <out>`. `out` is
// `then`, followed by what it lacks, so that a restore continues a database that was returned to that state. An animal
// that is added keeps its id if that is greater than all ids of `then`. Otherwise it gets a new one.

import { printJson } from "../../src/values/json.ts";
import { exit, printable, readArguments } from "../command-line.ts";
import { checkFile, type Line, readLines, saveFile } from "./file.ts";

/** The same id is the same animal if its caller and its time are the same. */
const isSame = ({ row: a }: Line, { row: b }: Line) => a.createdAt === b.createdAt && a.createdBy === b.createdBy;

/** Returns what to print. Throws with a message for the operator. */
export async function merge(then: string, now: string, out: string): Promise<string> {
  const { total: totalThen, last, keys } = await checkFile(then);
  const { total: totalNow, last: lastNow } = await checkFile(now);
  let nextId = (lastNow > last ? lastNow : last) + 1n;
  const counts = { onlyThen: newCount(), changed: newCount(), onlyNow: newCount(), newer: newCount() };
  const moved: string[] = [];
  const leftOut: string[] = [];

  /** Whether a line can be added. */
  function fits({ row }: Line): boolean {
    if (!keys.has(row)) return true;
    leftOut.push(`${row.id}, of ${row.createdBy}`);
    return false;
  }

  async function* merged(): AsyncGenerator<string> {
    for await (const { text } of readLines(then)) yield text;
    for await (const line of readLines(now)) {
      if (line.row.id <= last) continue;
      counts.newer.add(line.row.id);
      if (fits(line)) yield line.text;
    }
    for await (const line of missing()) {
      counts.onlyNow.add(line.row.id);
      if (!fits(line)) continue;
      moved.push(`${line.row.id} ${nextId}`);
      yield printJson({ ...line.row, id: nextId++ });
    }
  }

  /** The lines of `now` with an id up to the last one of `then`, whose animals `then` lacks. */
  async function* missing(): AsyncGenerator<Line> {
    const lines = readLines(now);
    let { value: line } = await lines.next();
    for await (const earlier of readLines(then)) {
      for (; line && line.row.id < earlier.row.id; { value: line } = await lines.next()) yield line;
      if (line?.row.id !== earlier.row.id) counts.onlyThen.add(earlier.row.id);
      else {
        if (!isSame(earlier, line)) yield line;
        else if (earlier.text !== line.text) counts.changed.add(line.row.id);
        ({ value: line } = await lines.next());
      }
    }
  }

  const total = await saveFile(out, merged());
  const list = (title: string, lines: string[]) => (lines.length > 0 ? [title, ...lines] : []);
  return [
    `${then} has ${totalThen} animals, and ${now} has ${totalNow}.`,
    `Only in ${then}: ${counts.onlyThen}`,
    `Changed: ${counts.changed}. ${out} has what ${then} has.`,
    `Only in ${now}: ${counts.onlyNow}`,
    `Newer, only in ${now}: ${counts.newer}`,
    ...list("Their ids are taken, so these animals get new ones (old id, new id):", moved),
    ...list(`Left out, because ${then} has their Idempotency-Key for a different animal (id in ${now}):`, leftOut),
    `Saved ${out}: ${total} lines.`,
  ].join("\n");
}

/** A number of animals, and the range of their ids, which are added in ascending order. */
function newCount() {
  let [count, first, last] = [0, 0n, 0n];
  return {
    add(id: bigint): void {
      if (count++ === 0) first = id;
      last = id;
    },
    toString: () => (count === 0 ? "0" : `${count}, ids ${first} to ${last}`),
  };
}

if (import.meta.main) {
  const usage = "npm run merge -- <then.jsonl> <now.jsonl> <out.jsonl>";
  const files = await readArguments(usage, ([then, now, out, ...more]) => {
    if (!then || !now || !out || more.length > 0) throw new Error("Name three files.");
    return [then, now, out] as const;
  });
  const text = await merge(...files).catch((failure: Error) => exit(failure.message, 1));
  console.log(printable(text));
}
