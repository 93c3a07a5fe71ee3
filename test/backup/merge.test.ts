// What a merge of two backups keeps, and what it prints about it.

import fc from "fast-check";
import { expect, it } from "vitest";
import { merge } from "../../scripts/backup/merge.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { fileOf, linesIn, newFile } from "./files.ts";
import { openDatabase } from "./sqlite-store.ts";

interface Animal {
  id: number;
  name: string;
  key?: string | undefined;
  by?: string | undefined;
  at?: number | undefined;
}
const lineOf = ({ id, name, key, by, at }: Animal) =>
  JSON.stringify({ id, name, categoryId: 1, status: "sold", idempotencyKey: key, createdBy: by, createdAt: at });

it("counts what differs, and adds what the earlier state lacks", async () => {
  const [kept, newer] = [lineOf({ id: 2, name: "kept" }), lineOf({ id: 7, name: "newer", by: "API_KEY", at: 9 })];
  const one = { id: 4, name: "one", by: "API_KEY", at: 1 };
  const then = fileOf([
    lineOf({ id: 1, name: "right" }),
    kept,
    lineOf({ ...one, key: "k" }),
    lineOf({ id: 5, name: "gone" }),
  ]);
  const now = fileOf([
    lineOf({ id: 1, name: "wrong" }),
    kept,
    lineOf({ id: 3, name: "in between" }),
    lineOf({ ...one, name: "a different one", by: "API_KEY_SHOP", key: "k" }),
    lineOf({ id: 6, name: "one, repeated", by: "API_KEY", at: 8, key: "k" }),
    newer,
  ]);
  const out = newFile();
  expect(await merge(then, now, out)).toBe(`\
Not added, because ${then} has their Idempotency-Key: the id in ${now}, and the one in ${then}
6 4
Added with a new id: the id in ${now}, and the new one
3 8
4 9
Only in ${then}: 2 (ids 4 to 5)
Only in ${now}: 2 (ids 3 to 4)
Newer, only in ${now}: 2 (ids 6 to 7)
In both, with different values: 1 (ids 1 to 1). ${out} has those of ${then}.
Saved ${out}: 7 lines.`);
  expect(linesIn(out)).toEqual([
    ...linesIn(then),
    newer,
    lineOf({ id: 8, name: "in between" }),
    lineOf({ ...one, id: 9, name: "a different one", by: "API_KEY_SHOP", key: "k" }),
  ]);
  await expect(merge(then, now, out)).rejects.toThrow(`${out} already exists, and nothing is ever overwritten.`);
});

it("lets a restore continue the earlier state, after which each animal is there, or listed", async () => {
  const animal: fc.Arbitrary<Animal> = fc.record({
    id: fc.integer({ min: 1, max: 9 }),
    name: fc.constantFrom("Rex", "Tom"),
    key: fc.constantFrom("1", "2", "3", undefined),
    by: fc.constantFrom("API_KEY", "API_KEY_SHOP"),
    at: fc.constantFrom(1, 2),
  });
  const animals = fc
    .uniqueArray(animal, { selector: ({ id }) => id })
    .map((all) => all.filter((a, at) => !a.key || at === all.findIndex((b) => b.key === a.key && b.by === a.by)))
    .map((all) => all.sort((a, b) => a.id - b.id));
  const property = fc.asyncProperty(animals, animals, async (then, now) => {
    const out = newFile();
    const printed = await merge(fileOf(then.map(lineOf)), fileOf(now.map(lineOf)), out);
    const listed = new Map(Array.from(printed.matchAll(/^(\d+) (\d+)$/gm), ([, a, b]) => [Number(a), Number(b)]));
    const database = await openDatabase();
    database.add(...then.map(lineOf));
    if (then.length + now.length > 0) await restore({ ...database.store, isLocal: true }, out);
    const stored = linesIn(out);
    expect(stored.slice(0, then.length)).toEqual(then.map(lineOf));
    for (const a of now) {
      const id = listed.get(a.id) ?? a.id;
      const owner = then.find((b) => b.key && a.key === b.key && a.by === b.by);
      if (then.some((b) => a.id === b.id && a.by === b.by && a.at === b.at)) expect(id).toBe(a.id);
      else if (owner) expect(id).toBe(owner.id);
      else expect(stored).toContain(lineOf({ ...a, id }));
    }
  });
  await fc.assert(property, { numRuns: 60 });
});
