// The deployed environments, as wrangler.toml describes them. Nothing else repeats their names, so renaming the service or
// an environment changes only that file.

import { createRequire } from "node:module";
import { join } from "node:path";
import { wrangler } from "./wrangler.ts";

/** The part that is used here: Wrangler publishes no types for it. */
interface Configuration {
  name: string;
  definedEnvironments?: string[];
  d1_databases: { database_name: string }[];
  routes?: (string | { pattern: string; custom_domain?: boolean })[];
}

export interface Environment {
  /** For example staging. */
  name: string;
  worker: string;
  database: string;
  /** The Worker's custom domain, if it has one. */
  domain: string | undefined;
}

/** Loads Wrangler only when it is called, because that takes half a second. */
function readConfig(env?: string): Configuration {
  const { unstable_readConfig } = createRequire(import.meta.url)("wrangler");
  return unstable_readConfig({ config: join(import.meta.dirname, "../wrangler.toml"), env });
}

/** The names of the deployed environments, such as staging. */
export function environmentNames(): string[] {
  return readConfig().definedEnvironments ?? [];
}

/** Throws if the environment is not in wrangler.toml. */
export function readEnvironment(name: string): Environment {
  const names = environmentNames();
  if (!names.includes(name)) throw new Error(`The environment must be ${names.join(" or ")}.`);
  const { name: worker, d1_databases, routes = [] } = readConfig(name);
  const [database] = d1_databases.map(({ database_name }) => database_name);
  if (!database) throw new Error(`wrangler.toml does not name a database for ${name}.`);
  const [domain] = routes.flatMap((route) => (typeof route === "object" && route.custom_domain ? [route.pattern] : []));
  return { name, worker, database, domain };
}

/** The animal that the smoke test adds to each environment, once: always under the same Idempotency-Key. */
export const SMOKE_TEST = {
  key: "smoke test",
  pet: { name: "Smoke test", categoryId: 9223372036854775807n, status: "sold" },
};

/** Whether the account has the environment's database. Throws WranglerFailed. */
export async function hasDatabase({ database }: Environment): Promise<boolean> {
  const { output } = await wrangler(["d1", "list", "--json"], { quiet: true });
  return (JSON.parse(output) as { name: string }[]).some(({ name }) => name === database);
}
