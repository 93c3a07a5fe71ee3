// What wrangler.toml says of an environment, and nothing else repeats: to rename the service, that file is changed.

import { join } from "node:path";
import { unstable_readConfig as readConfig } from "wrangler";

/** As far as it is read here: Wrangler publishes no types of it. */
interface Configuration {
  name: string;
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

/** Throws where wrangler.toml has no such environment. */
export function readEnvironment(name: string): Environment {
  const config = join(import.meta.dirname, "../wrangler.toml");
  const { name: worker, d1_databases, routes = [] }: Configuration = readConfig({ config, env: name });
  const [database] = d1_databases.map(({ database_name }) => database_name);
  if (!database) throw new Error(`wrangler.toml names no database for ${name}.`);
  const [domain] = routes.flatMap((route) => (typeof route === "object" && route.custom_domain ? [route.pattern] : []));
  return { name, worker, database, domain };
}
