// The environments: the deployed ones, as wrangler.toml describes them, and the local one.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { WRANGLER_TOML, wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");
// Next to the local database, so that removing the store removes this too.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");

/** The environment of `npm run dev`, which works without an account. */
export const LOCAL = "local";

/** The section of wrangler.toml for the trial Worker of an environment, on which a deployment is tested. */
export const trialOf = (name: string) => `${name}-trial`;

/** What the scripts read of a section of wrangler.toml. */
interface Section {
  name?: string;
  d1_databases?: { database_name?: string; database_id?: string }[];
}

/** The sections of wrangler.toml by name. That of the top level, which is not deployed, has an empty name. */
export function readSections(): Record<string, Section> {
  const { env = {}, ...topLevel } = parse(readFileSync(WRANGLER_TOML, "utf8"));
  return { ...(env as Record<string, Section>), "": topLevel };
}

/** The names of the deployed environments. */
export function environmentNames(sections = readSections()): string[] {
  return Object.keys(sections).filter((name) => name && !name.endsWith(trialOf("")));
}

/** Throws if the environment is not in wrangler.toml. */
export function readEnvironment(name: string) {
  const sections = readSections();
  const names = environmentNames(sections);
  if (!names.includes(name)) throw new Error(`The environment must be ${names.join(" or ")}.`);
  return { name, worker: sections[name]?.name ?? `${sections[""]?.name}-${name}` };
}

/** The names of the secrets of an environment's Worker. Throws WranglerFailed. */
export async function secretNames(name: string, run: typeof wrangler): Promise<string[]> {
  const secrets: { name: string }[] = JSON.parse(await run(["secret", "list", "--env", name]));
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
