// The database of a trial Worker. Each deployment drops its tables, and the commit's migrations build them from
// nothing: otherwise a migration that was applied there and then corrected would be skipped. So nothing else may ever
// be dropped: the database belongs to the trial alone, and commands call it by its name.

import { readSections, trialOf } from "../environment.ts";
import type { wrangler } from "../wrangler.ts";

/** The most animals that a test can leave, with room for more. */
const MAX_ROWS = 10;

// Children before their parents, which are older. A name is quoted by %w.
const DROPS = `SELECT format('DROP %s IF EXISTS "%w"', type, name) AS "drop", name FROM sqlite_schema
WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*' AND name NOT GLOB '_cf_*' ORDER BY rowid DESC`;
const COUNT = `SELECT count(*) AS "rows" FROM (SELECT 1 FROM pets LIMIT ${MAX_ROWS + 1})`;

/**
 * The name of the trial's database. Throws with a message for the operator unless wrangler.toml gives this database,
 * and no other, to the trial Worker alone. Wrangler would take an id before it looks for the name.
 */
export function trialDatabase(environment: string, sections = readSections()): string {
  const trial = trialOf(environment);
  const database = `animal-store-${trial}`;
  const { [trial]: own, ...others } = sections;
  const [first, ...more] = own?.d1_databases ?? [];
  const refuse = (section: string, rule: string) =>
    new Error(`${section} in wrangler.toml must ${rule}: a deployment drops all tables of that database.`);
  if (first?.database_name !== database || "database_id" in first || more.length > 0) {
    throw refuse(`[env.${trial}]`, `have exactly one database, with the name ${database} and without an id`);
  }
  for (const [name, { d1_databases = [] }] of Object.entries(others)) {
    if (!d1_databases.some(({ database_name }) => database_name === database)) continue;
    throw refuse(name ? `[env.${name}]` : "The top level", `not name the database ${database}`);
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
nothing was dropped. Find out whose animals these are. If nobody needs them, delete the Worker and the database:
npx wrangler delete --env ${trialOf(environment)}
npx wrangler d1 delete ${database}`);
    }
  }
  if (found.length > 0) await execute(found.map(({ drop }) => drop).join(";\n"));
}
