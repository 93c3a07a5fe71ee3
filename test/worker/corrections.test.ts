// Animals stay as they were added, whatever an operator or a migration does by accident. Whoever corrects or removes
// some notes them in the table `corrections` first.

import { env } from "cloudflare:workers";
import { beforeEach, expect, it } from "vitest";
import { createPet, insertRows, REX } from "./call.ts";

const REFUSED = "Animals stay. To";

const pets = async () => (await env.DB.prepare("SELECT * FROM pets").all()).results;
const note = (id: number, age: number) =>
  env.DB.exec(`INSERT INTO corrections (pet_id, reason, noted_at) VALUES (${id}, 'A test', unixepoch() - ${age})`);

beforeEach(async () => {
  await insertRows(2);
});

it.each([
  "DELETE FROM pets",
  "DELETE FROM pets WHERE id = 2",
  "UPDATE pets SET status = 'sold'",
  "UPDATE OR IGNORE pets SET category_id = 5",
  "UPDATE pets SET id = id + 1 WHERE id = 2",
])("%s is refused, and changes nothing, also if some of the animals are noted", async (statement) => {
  const before = await pets();
  await note(1, 0);
  await expect(env.DB.exec(statement)).rejects.toThrow(REFUSED);
  expect(await pets()).toEqual(before);
});

it("every column is protected", async () => {
  await createPet(REX, { headers: { "Idempotency-Key": "key" } });
  const row = (await pets()).at(-1) ?? {};
  expect(Object.values(row)).not.toContain(null);
  for (const column of Object.keys(row)) {
    // One digit more: a different text or integer.
    const change = `UPDATE pets SET ${column} = ${column} || 1 WHERE id = ${row["id"]}`;
    await expect(env.DB.exec(change), `A trigger must name ${column}`).rejects.toThrow(REFUSED);
  }
});

it("an animal that is noted can be changed and removed for an hour, and noted again", async () => {
  await note(2, 3600);
  await expect(env.DB.exec("DELETE FROM pets WHERE id = 2")).rejects.toThrow(REFUSED);
  await expect(env.DB.exec("UPDATE pets SET name = 'Ada' WHERE id = 2")).rejects.toThrow(REFUSED);
  await note(2, 3590);
  await env.DB.exec("UPDATE pets SET name = 'Ada' WHERE id = 2");
  await env.DB.exec("DELETE FROM pets WHERE id = 2");
  expect(await pets()).toMatchObject([{ id: 1 }]);
});
