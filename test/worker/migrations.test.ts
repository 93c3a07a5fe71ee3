// Migrations keep what is stored, and keep the version before them working, because it serves until the next one is
// promoted. Cloudflare can run them. Every other test migrates an empty database.

import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { createPet, REX } from "./call.ts";

type Row = Record<string, unknown>;

const storedRow = () => env.DB.prepare("SELECT * FROM pets").first<Row>();

it.each(env.MIGRATIONS.slice(1))(
  "$name keeps the rows and the counter of ids, and accepts the INSERT before it",
  async ({ name }) => {
    await createPet(REX, { headers: { "Idempotency-Key": "key" } });
    const full: Row = { ...(await storedRow()) };
    expect(Object.values(full)).not.toContain(null);

    const index = env.MIGRATIONS.findIndex((migration) => migration.name === name);
    await reset();
    await applyD1Migrations(env.DB, env.MIGRATIONS.slice(0, index));
    const { results } = await env.DB.prepare("SELECT name FROM pragma_table_info('pets')").all();
    const before = results.map((column) => String(column["name"]));
    const sql = `INSERT INTO pets (${before.join(", ")}) VALUES (${before.map(() => "?").join(", ")})`;
    const insert = env.DB.prepare(sql).bind(...before.map((column) => full[column]));
    const expected = Object.fromEntries(before.map((column) => [column, full[column]]));
    await insert.run();
    await env.DB.exec("UPDATE sqlite_sequence SET seq = 100 WHERE name = 'pets'");
    await applyD1Migrations(env.DB, env.MIGRATIONS.slice(0, index + 1));
    expect(await storedRow()).toMatchObject(expected);
    expect(JSON.parse((await createPet(REX)).text).id).toBe(101);

    await env.DB.exec("DELETE FROM pets");
    await insert.run();
    expect(await storedRow()).toMatchObject(expected);
  },
);

const FILES = import.meta.glob<string>("../../migrations/*.sql", { query: "?raw", import: "default", eager: true });

// What passes here, and has been seen to fail at Cloudflare, which takes a file apart in its own way.
it.each(Object.entries(FILES))("%s ends with a semicolon, has none in a comment, and has no trigger", (_, sql) => {
  const commentOrText = /(--.*|\/\*[\s\S]*?\*\/)|'[^']*'|"[^"]*"/g;
  const comments = [...sql.matchAll(commentOrText)].map(([, comment = ""]) => comment);
  expect(comments.filter((comment) => /['";]/.test(comment))).toEqual([]);
  // Wrangler appends a statement of its own.
  expect(sql.trimEnd()).toMatch(/;$/);
  expect(sql.replaceAll(commentOrText, "")).not.toMatch(/\bTRIGGER\b/i);
});
