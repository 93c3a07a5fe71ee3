// What `wrangler dev` needs and a fresh clone lacks: the local key and the tables of the local store. Two services that
// share a store fail many creates (SQLITE_BUSY), so the second one is told.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";
import { applyLocalMigrations } from "../migrations.ts";

const ROOT = join(import.meta.dirname, "../..");
const SECRETS = join(ROOT, ".dev.vars");
const SERVICE = join(ROOT, ".wrangler/service.pid");

/** Creates what is missing, and prints what a newcomer needs. Throws WranglerFailed if a migration fails. */
export async function prepareLocalService(): Promise<void> {
  const other = otherService();
  cpSync(`${SECRETS}.example`, SECRETS, { force: false });
  await applyLocalMigrations();
  const [key] = readKeys(parseEnv(readFileSync(SECRETS, "utf8"))["API_KEY"] ?? "").keys;
  // Without the trailing newline, which Wrangler would print as an empty line.
  process.stdout.write(`The API reference is at /, the service at /v1, and its key is ${key} (.dev.vars).
To empty the store, stop the service and remove .wrangler/state.`);
  if (other === undefined) return;
  process.stderr.write(`WARNING: another service (process ${other}) is running in this folder. If both use its store, many creates fail:
stop one of them, or run it in a second clone.`);
}

/**
 * The process of another service that runs in this folder, if any; otherwise this service is recorded. Wrangler runs every
 * build in a shell, so the parent of that shell stands for the service: it is the same for a rebuild, and after a kill it no
 * longer runs Wrangler. Without `ps`, as on Windows, nothing is found.
 */
function otherService(): string | undefined {
  const ps = (column: string, pid: string | number) =>
    spawnSync("ps", ["-o", `${column}=`, "-p", String(pid)], { encoding: "utf8" }).stdout?.trim() ?? "";
  const service = ps("ppid", process.ppid);
  const recorded = existsSync(SERVICE) ? readFileSync(SERVICE, "utf8") : service;
  if (recorded !== service && ps("args", recorded).includes("wrangler")) return recorded;
  mkdirSync(dirname(SERVICE), { recursive: true });
  writeFileSync(SERVICE, service);
  return undefined;
}
