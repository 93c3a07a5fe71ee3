// Creates what an environment lacks, by Wrangler's `d1 create` and `secret put`. What is there stays as it is, so after
// any failure the same command continues, and no API key that is in use is replaced.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { currentCommit } from "./commit.ts";
import { ENVIRONMENTS, type Environment } from "./environment.ts";
import { OTHER_SETTINGS } from "./other-settings.js";
import { ROOT, wrangler } from "./wrangler.ts";

const USAGE = `usage: npm run setup -- [${ENVIRONMENTS.join("|")}] --location=<place>, or --jurisdiction=<place>
Where data is stored cannot be changed later. A location is a request: weur, eeur (Western and Eastern Europe), wnam,
enam (Western and Eastern North America), apac (Asia and the Pacific), oc (Oceania). A jurisdiction is a guarantee:
eu (European Union), us (United States), fedramp (data centers that comply with FedRAMP).`;
const PLACE = /^--(location=(weur|eeur|wnam|enam|apac|oc)|jurisdiction=(eu|us|fedramp))$/;

/** The name of a database in wrangler.toml. Throws if the place next to it is different. */
function databaseOf(environment: Environment, place: string): string {
  const tables = readFileSync(join(ROOT, "wrangler.toml"), "utf8").split(/^(?=\[)/m);
  const table = tables.find((text) => text.startsWith(`[[env.${environment}.d1_databases]]`)) ?? "";
  const [, name = "", recorded = "no place"] = /^database_name = "(.+)" # (.+)$/m.exec(table) ?? [];
  if (recorded === place) return name;
  throw new Error(`wrangler.toml records ${recorded} for ${environment}; you asked for ${place}.
Change that comment, commit, and run this again.`);
}

const hasName = (list: string, name: string): boolean =>
  JSON.parse(list).some((item: { name: string }) => item.name === name);

function hasKey(environment: Environment): boolean {
  try {
    return hasName(wrangler(["secret", "list", "--env", environment], { output: "pipe" }), "API_KEY");
  } catch (failure) {
    // Wrangler has no command that lists Workers.
    if (/Worker ".+" .*not found/.test((failure as Error).message)) return false;
    throw failure;
  }
}

/** Creates a database and then a key, if they are missing. A key without a database is an accident. */
function setUp(environment: Environment, place: string, databases: string): void {
  const name = databaseOf(environment, place);
  const hasDatabase = hasName(databases, name);
  const isKeySet = hasKey(environment);
  if (isKeySet && !hasDatabase)
    throw new Error(`${environment} has an API key, but not ${name}: see "A deleted database" in docs/OPERATIONS.md.`);
  // After an empty line, Wrangler suggests to paste an id, which is valid only in this account.
  if (!hasDatabase) console.log(wrangler(["d1", "create", name, place], { output: "pipe" }).trim().split("\n\n")[0]);
  else console.log(`${environment} has the database ${name}.`);
  if (isKeySet) {
    console.log(`${environment} has an API key, which stays as it is.`);
    return;
  }
  const key = randomBytes(32).toString("base64url");
  // Printed first, so that no key is set that nobody knows.
  console.log(`\nAPI key of ${environment}: ${key}
Save it: it cannot be read again, and replaces one that an earlier run has printed.\n`);
  wrangler(["secret", "put", "API_KEY", "--env", environment], { input: key });
}

try {
  const args = process.argv.slice(2);
  const place = args.find((arg) => PLACE.test(arg));
  const named = ENVIRONMENTS.filter((environment) => args.includes(environment));
  if (!place || args.length > named.length + 1) throw new Error(USAGE);
  if (OTHER_SETTINGS) throw new Error("Move this clone to a different folder, and run this again.");
  const environments = named.length > 0 ? named : ENVIRONMENTS;
  for (const environment of environments) databaseOf(environment, place);
  currentCommit(); // throws if wrangler.toml was changed
  const databases = wrangler(["d1", "list", "--json"], { output: "pipe" });
  for (const environment of environments) setUp(environment, place, databases);
  const next = named.length === 1 ? `deploy:${named}` : "deploy";
  console.log(`\nThen: npm run ${next}`);
} catch (failure) {
  console.error((failure as Error).message);
  process.exitCode = 1;
}
