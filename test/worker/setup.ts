// Every test starts with an empty database, created by the real migrations.

import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, beforeEach } from "vitest";
import { COVERED, STORED_COLUMNS } from "../../scripts/backup/tables.ts";

// Otherwise a missing migration or table would make hundreds of tests fail, each for a different reason.
beforeAll(async () => {
  await createEmptyDatabase();
  const { results } = await env.DB.prepare(STORED_COLUMNS).all();
  const created = results.map(({ name }) => String(name));
  const missing = COVERED.filter((name) => !created.includes(name));
  if (missing.length > 0) throw new Error(`No migration creates ${missing.join(", ")}: add a file to migrations/.`);
  const unlisted = created.filter((name) => !COVERED.includes(name));
  if (unlisted.length > 0)
    throw new Error(
      `No backup covers ${unlisted.join(", ")}: add a column to PET_COLUMNS or its like, a table to scripts/backup/tables.ts.`,
    );
});

beforeEach(createEmptyDatabase);

async function createEmptyDatabase(): Promise<void> {
  await reset();
  await applyD1Migrations(env.DB, env.MIGRATIONS);
}
