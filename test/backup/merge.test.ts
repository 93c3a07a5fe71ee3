// What a merge of two backups keeps, and what it prints about it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { merge } from "../../scripts/backup/merge.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** An animal that `caller` has added at a time. */
const animal = (id: number, name: string, createdAt: number, key?: string, caller = "API_KEY") =>
  JSON.stringify({ id, name, categoryId: 1, status: "sold", idempotencyKey: key, createdBy: caller, createdAt });
const FOREIGN = '{"id":5,"name":"from elsewhere","categoryId":1,"status":"sold"}';

let merges = 0;
async function mergeLines(then: string[], now: string[]) {
  const files = ["then", "now", "out"].map((name) => join(folder, `${name}-${merges++}.jsonl`));
  const [thenFile = "", nowFile = "", out = ""] = files;
  writeFileSync(thenFile, then.join("\n"));
  writeFileSync(nowFile, now.join("\n"));
  const printed = await merge(thenFile, nowFile, out);
  const names = ["then", "now", "out"];
  const text = files.reduce((text, file, i) => text.replaceAll(file, names[i] ?? ""), printed);
  return { lines: readFileSync(out, "utf8").trim().split("\n"), printed: text.split("\n"), files };
}

it("keeps what was, and adds what it lacks: with its id if that is greater than all, or with a new one", async () => {
  const then = [animal(1, "right", 1), animal(2, "only then", 1), animal(4, "one", 4), FOREIGN];
  const now = [
    animal(1, "wrong", 1),
    animal(3, "in a gap", 7),
    animal(4, "a different one", 8, undefined, "API_KEY_SHOP"),
    FOREIGN.replace("elsewhere", "nowhere"),
    animal(6, "newer", 9),
    animal(7, "newest", 9),
  ];
  const { lines, printed } = await mergeLines(then, now);
  expect(lines).toEqual([
    ...then,
    ...now.slice(4),
    animal(8, "in a gap", 7),
    animal(9, "a different one", 8, undefined, "API_KEY_SHOP"),
  ]);
  expect(printed).toEqual([
    "then has 4 animals, and now has 6.",
    "Only in then: 1, ids 2 to 2",
    "Changed: 2, ids 1 to 5. out has what then has.",
    "Only in now: 2, ids 3 to 4",
    "Newer, only in now: 2, ids 6 to 7",
    "Their ids are taken, so these animals get new ones (old id, new id):",
    "3 8",
    "4 9",
    "Saved out: 8 lines.",
  ]);
});

it("leaves out an animal whose caller has its Idempotency-Key for a different one, and no other", async () => {
  const then = [animal(1, "first", 1, "1")];
  const now = [
    animal(1, "different", 2, "1"),
    animal(2, "other key", 2, "2"),
    animal(3, "other caller", 2, "1", "API_KEY_SHOP"),
  ];
  const { lines, printed } = await mergeLines(then, now);
  expect(lines).toEqual([...then, ...now.slice(1)]);
  expect(printed.slice(-3)).toEqual([
    "Left out, because then has their Idempotency-Key for a different animal (id in now):",
    "1, of API_KEY",
    "Saved out: 3 lines.",
  ]);
});

it("counts what only the earlier state has, at its end too, and overwrites nothing", async () => {
  const then = [animal(1, "a", 1), animal(2, "b", 1), animal(3, "c", 1)];
  const { lines, printed, files } = await mergeLines(then, [animal(1, "a", 1)]);
  expect(lines).toEqual(then);
  expect(printed).toContain("Only in then: 2, ids 2 to 3");
  expect(printed).toContain("Changed: 0. out has what then has.");
  const [thenFile = "", nowFile = "", out = ""] = files;
  await expect(merge(thenFile, nowFile, out)).rejects.toThrow("already exists, and is never overwritten.");
  await expect(merge(thenFile, `${nowFile}x`, `${out}x`)).rejects.toThrow("does not exist.");
});
