// What `wrangler dev` needs and a fresh clone lacks: the local key and the tables of the local store. It imports nothing from
// src/, so that an error there does not stop it.

import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { applyLocalMigrations } from "../migrations.ts";

const SECRETS = join(import.meta.dirname, "../../.dev.vars");

/** Creates what is missing, and prints what a newcomer needs. Throws WranglerFailed if a migration fails. */
export async function prepareLocalService(): Promise<void> {
  cpSync(`${SECRETS}.example`, SECRETS, { force: false });
  await applyLocalMigrations();
  const [key] = (parseEnv(readFileSync(SECRETS, "utf8"))["API_KEY"] ?? "").split(",");
  // Without the trailing newline, which Wrangler would print as an empty line.
  process.stdout.write(`The API reference is at /, the service at /v1, and its key is ${key} (.dev.vars).
To empty the store, stop the service and remove .wrangler/state.`);
}
