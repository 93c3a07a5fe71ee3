// What `wrangler dev` needs and a fresh clone lacks: the local key, and the tables of the local database.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";

const ROOT = join(import.meta.dirname, "..");
const SECRETS = join(ROOT, ".dev.vars");
const WRANGLER = join(dirname(fileURLToPath(import.meta.resolve("wrangler/package.json"))), "bin/wrangler.js");

// Beside the database, so that it goes with it: a new store gets its tables, and an old one costs no time.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");

/** Makes what is missing, and prints what a newcomer needs. Throws with Wrangler's output when a migration fails. */
export function prepareLocalService(): void {
  cpSync(`${SECRETS}.example`, SECRETS, { force: false });
  applyMigrations();
  const [key] = parseEnv(readFileSync(SECRETS, "utf8"))["API_KEY"]?.split(",") ?? [];
  // Without a newline at the end, of which Wrangler would make an empty line.
  process.stdout.write(`The API reference is at /, the service at /v1, and its key is ${key} (.dev.vars).
To empty the store, end this and remove .wrangler/state.`);
}

/** Only what is new, because a service may be running on the database: this runs again whenever it is built anew. */
export function applyMigrations(): void {
  const migrations = readdirSync(join(ROOT, "migrations")).sort().join("\n");
  if (existsSync(APPLIED) && readFileSync(APPLIED, "utf8") === migrations) return;
  const apply = [WRANGLER, "d1", "migrations", "apply", "DB", "--local"];
  const run = () => spawnSync(process.execPath, apply, { cwd: ROOT, encoding: "utf8" });
  let result = run();
  // Another service that starts in this folder may have been quicker; then there is nothing left to apply.
  if (result.status !== 0) result = run();
  if (result.status !== 0) throw new Error(`The migrations were not applied:\n${result.stdout}${result.stderr}`);
  mkdirSync(dirname(APPLIED), { recursive: true });
  writeFileSync(APPLIED, migrations);
}
