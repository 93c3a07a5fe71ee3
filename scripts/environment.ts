// What wrangler.toml says about the environments, so that nothing else repeats it: to rename the service, change that file.

import { join } from "node:path";
import { unstable_readConfig as readConfig } from "wrangler";

/** The part that is used here: Wrangler publishes no types for it. */
interface Configuration {
  name: string;
  definedEnvironments?: string[];
  d1_databases: { database_name: string }[];
  routes?: (string | { pattern: string; custom_domain?: boolean })[];
}

export interface Environment {
  /** Such as staging. */
  name: string;
  worker: string;
  database: string;
  /** A domain of the Worker's own, if it has one. */
  domain: string | undefined;
}

const config = join(import.meta.dirname, "../wrangler.toml");

/** The names of the environments that can be deployed. */
export function environmentNames(): string[] {
  const { definedEnvironments = [] }: Configuration = readConfig({ config });
  return definedEnvironments;
}

/** Throws if wrangler.toml has no such environment. */
export function readEnvironment(name: string): Environment {
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
