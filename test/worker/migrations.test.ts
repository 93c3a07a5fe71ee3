// Migrations keep what is stored. Every other test migrates an empty database.

import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";

const ROW = { id: "9007199254740993", name: "Rex", category_id: "9223372036854775807", status: "sold" };
const KEPT = `SELECT CAST(id AS TEXT) AS id, name, CAST(category_id AS TEXT) AS category_id, status FROM pets`;

it.each(env.MIGRATIONS.slice(1))("$name keeps every animal", async ({ name }) => {
  const index = env.MIGRATIONS.findIndex((migration) => migration.name === name);
  await reset();
  await applyD1Migrations(env.DB, env.MIGRATIONS.slice(0, index));
  await env.DB.prepare("INSERT INTO pets (id, name, category_id, status) VALUES (?, ?, ?, ?)")
    .bind(...Object.values(ROW))
    .run();
  const { results: before } = await env.DB.prepare("SELECT name FROM pragma_table_info('pets')").all();
  const hasKey = before.some((column) => column["name"] === "idempotency_key");
  if (hasKey) await env.DB.exec("UPDATE pets SET idempotency_key = 'key'");
  await applyD1Migrations(env.DB, env.MIGRATIONS);
  expect(await env.DB.prepare(KEPT).all()).toMatchObject({ results: [ROW] });
  expect(await env.DB.prepare("SELECT idempotency_key FROM pets").first("idempotency_key")).toBe(hasKey ? "key" : null);
});
