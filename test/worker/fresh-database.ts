// Every test starts with an empty database, created by the real migrations, on a day before getPet is removed.

import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, vi } from "vitest";

const queries = env.MIGRATIONS.flatMap((migration) => migration.queries);

beforeEach(async () => {
  vi.setSystemTime("2026-11-20");
  // One round trip, and so several times faster than applyD1Migrations, which also records each migration.
  await env.DB.batch(queries.map((query) => env.DB.prepare(query)));
});

// Not before each test: at the start of a file, reset() sometimes leaves what the previous file has stored.
afterEach(reset);
