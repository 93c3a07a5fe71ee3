// Every test starts with an empty database, created by the real migrations.

import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, beforeEach } from "vitest";
import { COVERED, STORED_COLUMNS } from "../../scripts/backup/tables.ts";
import index from "../../src/index.ts?raw";
import { operations } from "../conformance.ts";

// Every operation has its route on one line of src/index.ts.
const routes = [...index.matchAll(/^ {2}\.(get|post|put|patch|delete)\("([^"]+)"/gm)].map(
  ([, method = "", path = ""]) => `${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, "{$1}")}`,
);
const described = operations.map(({ method, path }) => `${method} /v1${path}`);

/** The names that only the first list has, as text; undefined if there are none. */
const missing = (names: string[], others: string[]) =>
  names.filter((name) => !others.includes(name)).join(", ") || undefined;

// Otherwise one missing route, description, migration or table would make dozens of tests fail, for different reasons.
beforeAll(async () => {
  await createEmptyDatabase();
  const { results } = await env.DB.prepare(STORED_COLUMNS).all();
  const created = results.map(({ name }) => String(name));
  const problems = [
    ["src/index.ts has no route for", missing(described, routes)],
    ["src/openapi/ does not describe", missing(routes, described)],
    ["migrations/ does not create", missing(COVERED, created)],
    ["Neither PET_COLUMNS (or its like) nor scripts/backup/tables.ts has", missing(created, COVERED)],
  ].filter(([, names]) => names);
  if (problems.length > 0) throw new Error(problems.map((problem) => problem.join(" ")).join("; "));
});

beforeEach(createEmptyDatabase);

async function createEmptyDatabase(): Promise<void> {
  await reset();
  await applyD1Migrations(env.DB, env.MIGRATIONS);
}
