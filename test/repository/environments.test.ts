// The environments in wrangler.toml. A commit is tested in staging, which proves something about production only as
// long as both are alike.

import { expect, it } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { scripts } from "../../package.json";
import { ENVIRONMENTS } from "../../scripts/environment.ts";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";

/** What the tests use of a section: Wrangler exports the function without types. */
interface Section {
  name: string;
  vars: Record<string, unknown>;
  d1_databases: { database_name: string }[];
  ratelimits: { name: string; namespace_id: string; simple: { period: number } }[];
}

const sections: Section[] = ENVIRONMENTS.map((env) => readConfig({ config: "wrangler.toml", env }));

it("differ only in names, databases, counters of the rate limit, and addresses", () => {
  const [staging, ...others] = sections.map((section) => ({
    ...section,
    name: "",
    topLevelName: "",
    targetEnvironment: "",
    routes: [],
    workers_dev: true,
    d1_databases: section.d1_databases.map((database) => ({ ...database, database_name: "" })),
    ratelimits: section.ratelimits.map((limit) => ({ ...limit, namespace_id: "" })),
  }));
  for (const other of others) expect(other).toEqual(staging);
});

it("have a Worker, a database and counters of their own, by their names, and no id", () => {
  expect(sections.map(({ name }) => name)).toEqual(ENVIRONMENTS.map((environment) => `animal-store-${environment}`));
  const databases = sections.flatMap(({ d1_databases }) => d1_databases);
  expect(databases.map(Object.keys)).toEqual(sections.map(() => ["binding", "database_name"]));
  expect(new Set(databases.map(({ database_name }) => database_name)).size).toBe(sections.length);
  // Cloudflare refuses a deployment without an environment, because no database has this id.
  expect(readConfig({ config: "wrangler.toml" }).d1_databases).toMatchObject([{ database_id: "DB" }]);
  // 1001 is that of Cloudflare's example, which another Worker of the account could have.
  const counters = sections.flatMap(({ ratelimits }) => ratelimits.map(({ namespace_id }) => namespace_id));
  expect(new Set(["1001", ...counters]).size).toBe(1 + sections.length);
});

it("have no variable whose name begins like that of a key, because it would be a caller's key", () => {
  const names = [readConfig({ config: "wrangler.toml" }), ...sections].flatMap(({ vars }) => Object.keys(vars));
  expect(names.filter((name) => /^API_KEY/i.test(name))).toEqual([]);
});

it("are all that the commands know", () => {
  expect(readConfig({ config: "wrangler.toml" }).definedEnvironments).toEqual(ENVIRONMENTS);
  expect(Object.keys(scripts).filter((name) => name.startsWith("deploy:"))).toEqual(
    ENVIRONMENTS.map((environment) => `deploy:${environment}`),
  );
});

it("limit the rate for the period that Retry-After announces", () => {
  const limits = sections.flatMap(({ ratelimits }) => ratelimits.map(({ name, simple }) => [name, simple.period]));
  expect(limits).toEqual(sections.map(() => ["RATE_LIMIT", Number(RETRY_AFTER)]));
});
