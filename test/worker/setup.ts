// Every test starts with an empty database, created by the real migrations.

import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, beforeEach } from "vitest";
import { TABLES } from "../../scripts/backup/tables.ts";
import { nameOf } from "../../src/d1/columns.ts";

// Otherwise a missing migration or table would fail hundreds of tests, each for a different reason.
beforeAll(async () => {
  await applyD1Migrations(env.DB, env.MIGRATIONS);
  const { results } = await env.DB.prepare(
    `SELECT tables.name || '.' || columns.name AS name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
      WHERE tables.type = 'table' AND tables.name <> 'd1_migrations'
      AND tables.name NOT GLOB '_cf_*' AND tables.name NOT GLOB 'sqlite_*'`,
  ).all();
  const created = results.map(({ name }) => String(name));
  const listed = TABLES.flatMap(({ name, columns }) =>
    Object.values(columns).map((column) => `${name}.${nameOf(column)}`),
  );
  const missing = listed.filter((name) => !created.includes(name));
  if (missing.length > 0) throw new Error(`No migration creates ${missing.join(", ")}: add a file to migrations/.`);
  const unlisted = created.filter((name) => !listed.includes(name));
  if (unlisted.length > 0) throw new Error(`No backup has ${unlisted.join(", ")}: add it to scripts/backup/tables.ts.`);
});

beforeEach(async () => {
  await reset();
  await applyD1Migrations(env.DB, env.MIGRATIONS);
});
