// Creates and updates the tables of the local store, for the local service and for a backup or restore of it.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { WranglerFailed, wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");

// Next to the database, so that removing the store removes this too.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");

/**
 * Runs Wrangler only if there is a new migration: a start costs a second, and a running service may be using the store.
 * Throws WranglerFailed.
 */
export async function applyLocalMigrations(): Promise<void> {
  const migrations = readdirSync(join(ROOT, "migrations")).sort().join("\n");
  if (existsSync(APPLIED) && readFileSync(APPLIED, "utf8") === migrations) return;
  const apply = () => wrangler(["d1", "migrations", "apply", "DB", "--local"], { quiet: true, cutOff: true });
  await apply().catch((failure) => {
    // Another process in this folder may have applied them in the meantime; then nothing is left to do.
    if (failure instanceof WranglerFailed) return apply();
    throw failure;
  });
  mkdirSync(dirname(APPLIED), { recursive: true });
  writeFileSync(APPLIED, migrations);
}
