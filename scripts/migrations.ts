// Creates and updates the tables of the local store, for the local service and for its backup and restore.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");

// Next to the database, so that removing the store removes this too.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");

/** Runs Wrangler only for a new migration: it takes a second, and a service may be using the store. Throws WranglerFailed. */
export async function applyLocalMigrations(): Promise<void> {
  const migrations = readdirSync(join(ROOT, "migrations")).sort().join("\n");
  if (existsSync(APPLIED) && readFileSync(APPLIED, "utf8") === migrations) return;
  const apply = () => wrangler(["d1", "migrations", "apply", "DB", "--local"]);
  // A different process in this folder may apply them at the same moment. Then nothing is left to do the second time.
  await apply().catch(apply);
  writeFileSync(APPLIED, migrations);
}
