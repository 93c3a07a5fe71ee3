// The environments: the deployed ones, as wrangler.toml describes them, and the local one.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { retry, wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");
const WRANGLER_TOML = join(ROOT, "wrangler.toml");
// Next to the local database, so that removing the store removes this too.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");

/** The environment of `npm run dev`, which works without an account. */
export const LOCAL = "local";

/** The section of wrangler.toml for the trial Worker of an environment, on which a deployment is tested. */
export const trialOf = (name: string) => `${name}-trial`;

/** The names of the deployed environments that have a trial Worker. Does not load Wrangler, which would need 170 MB. */
export function environmentNames(): string[] {
  const tables = readFileSync(WRANGLER_TOML, "utf8").matchAll(/^\[env\.([\w-]+)\]/gm);
  const sections = [...tables].map(([, name = ""]) => name);
  return sections.filter((name) => sections.includes(trialOf(name)));
}

/** Throws if the environment is not in wrangler.toml. */
export function readEnvironment(name: string) {
  const names = environmentNames();
  if (!names.includes(name)) throw new Error(`The environment must be ${names.join(" or ")}.`);
  // Loaded only here, because that takes half a second.
  const { unstable_readConfig }: typeof import("wrangler") = createRequire(import.meta.url)("wrangler");
  const { name: worker } = unstable_readConfig({ config: WRANGLER_TOML, env: name });
  return { name, worker };
}

/**
 * The names of the secrets of an environment's Worker. Tried as retry() does with this `pause`. Throws WranglerFailed.
 */
export async function secretNames(name: string, run: typeof wrangler, pause: number): Promise<string[]> {
  const secrets: { name: string }[] = JSON.parse(await retry(() => run(["secret", "list", "--env", name]), pause));
  return secrets.map((secret) => secret.name);
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
