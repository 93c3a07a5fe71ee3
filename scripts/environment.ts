// The deployed environments, as wrangler.toml describes them. Nothing else repeats their names, so renaming the service or
// an environment changes only that file.

import { join } from "node:path";
import { unstable_readConfig as readConfig } from "wrangler";
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

const config = join(import.meta.dirname, "../wrangler.toml");

/** The names of the deployed environments, such as staging. */
export function environmentNames(): string[] {
  return (readConfig({ config }) as Configuration).definedEnvironments ?? [];
}

/** Throws if wrangler.toml has no such environment. */
export function readEnvironment(name: string): Environment {
  const names = environmentNames();
  if (!names.includes(name)) throw new Error(`The environment must be ${names.join(" or ")}.`);
  const { name: worker, d1_databases, routes = [] }: Configuration = readConfig({ config, env: name });
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
