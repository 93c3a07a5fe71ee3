// The database of a trial Worker. Each deployment drops its tables, and the commit's migrations build them from
// nothing: otherwise a migration that was applied there and then corrected would be skipped. So nothing else may ever
// be dropped: the database belongs to the trial alone, and commands call it by its name.

import { readSections, trialOf } from "../environment.ts";
import type { wrangler } from "../wrangler.ts";

/** The most animals that a test can leave, with room for more. */
const MAX_ROWS = 10;

// Virtual tables before what they consist of, and children before their parents, which are older. %w quotes a name.
const DROPS = `SELECT format('DROP %s IF EXISTS "%w"', type, name) AS "drop", name FROM sqlite_schema
WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_cf_*'
ORDER BY sql LIKE 'CREATE VIRTUAL %' DESC, rowid DESC`;
// If tables refer to each other, no order is right. https://developers.cloudflare.com/d1/sql-api/foreign-keys/
const DEFER = "PRAGMA defer_foreign_keys = on";
const COUNT = `SELECT count(*) AS "rows" FROM (SELECT 1 FROM pets LIMIT ${MAX_ROWS + 1})`;

/**
 * The name of the trial's database. Throws with a message for the operator unless wrangler.toml gives this database,
 * and no other, to the trial Worker alone. Wrangler would take an id, which could be that of any database, before it
 * looks for the name. And a Worker with a different name could be an environment's.
 */
export function trialDatabase(environment: string, sections = readSections()): string {
  const trial = trialOf(environment);
  const database = `animal-store-${trial}`;
  const { [trial]: own, ...others } = sections;
  const refuse = (section: string, rule: string) =>
    new Error(`${section} in wrangler.toml must ${rule}: a deployment drops all tables of the trial's database.`);
  const [first, ...more] = own?.d1_databases ?? [];
  if (own?.name || first?.database_name !== database || "database_id" in first || more.length > 0) {
    const rule = `have no name, and exactly one database, with the name ${database} and without an id`;
    throw refuse(`[env.${trial}]`, rule);
  }
  for (const [name, { name: worker, d1_databases = [] }] of Object.entries(others)) {
    const isTrials = d1_databases.some((other) => other.database_name === database || "database_id" in other);
    if (!isTrials && worker !== database) continue;
    const place = name ? `[env.${name}]` : "The top level";
    throw refuse(place, `not have the name ${database}, a database with this name, or a database_id`);
  }
  return database;
}

/**
 * Drops all tables and views. What was cut off is repeated by the next deployment. Throws WranglerFailed, and an Error
 * with a message for the operator if the database has more animals than a test leaves.
 */
export async function dropTables(environment: string, database: string, run: typeof wrangler): Promise<void> {
  const execute = async (sql: string) => {
    const section = ["--env", trialOf(environment), "--remote", "--json"];
    const [first] = JSON.parse(await run(["d1", "execute", database, ...section, "--command", sql]));
    return first.results;
  };
  const found: { drop: string; name: string }[] = await execute(DROPS);
  if (found.some(({ name }) => name === "pets")) {
    const [{ rows }] = await execute(COUNT);
    if (rows > MAX_ROWS) {
      throw new Error(`The database ${database} has more than ${MAX_ROWS} animals, which no test leaves there, so
nothing was dropped. Find out whose animals these are.`);
    }
  }
  await execute([DEFER, ...found.map(({ drop }) => drop)].join(";\n"));
}
