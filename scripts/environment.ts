// The environments: their names, which addresses are known to be theirs, and the tables of the local one.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");
// Next to the local database, so that removing the store removes this too.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");

/** The environment of `npm run dev`, which works without an account. */
export const LOCAL = "local";

/** The deployed environments, as wrangler.toml describes them. */
export const ENVIRONMENTS = ["staging", "production"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** The host names of this machine. */
const THIS_MACHINE = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * A base URL, without a slash at its end. A key sent over plain HTTP can be read on the way, so that is possible only
 * on this machine. Throws with a message for the operator, which does not quote a password in it.
 */
export function parseBase(source: string, text: string): string {
  const url = URL.parse(text);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && THIS_MACHINE.test(url.hostname));
  const path = url?.pathname.replace(/\/+$/, "") ?? "";
  if (url && isSafe && path.endsWith("/v1")) return url.origin + path;
  throw new Error(`${source} must be an https URL, or an http URL of localhost, that ends in /v1.`);
}

/** Whether a base URL is known to be for tests, which may leave animals there. */
export function isForTests(base: string): boolean {
  const { hostname } = new URL(base);
  if (THIS_MACHINE.test(hostname)) return true;
  const [label = ""] = hostname.split(".");
  return /\bstaging\b/.test(label) && !label.includes("animal-store-production");
}

/**
 * Creates and updates the local tables. Throws WranglerFailed. Wrangler takes a second, so it runs only if the names of
 * the migrations are not those of the last time.
 */
export async function applyLocalMigrations(): Promise<void> {
  const migrations = readdirSync(join(ROOT, "migrations")).sort().join("\n");
  if (existsSync(APPLIED) && readFileSync(APPLIED, "utf8") === migrations) return;
  const apply = () => wrangler(["d1", "migrations", "apply", "DB", "--local"]);
  // A different process in this folder may apply them at the same moment. Then nothing is left to do the second time.
  await apply().catch(apply);
  writeFileSync(APPLIED, migrations);
}
