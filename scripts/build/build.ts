// Prepares what Wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before each `dev`,
// `deploy` and `types` (wrangler.toml, [build]), with the environment's name if there is one.

import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { exit } from "../command-line.ts";
import { applyLocalMigrations, hasDatabase, readEnvironment } from "../environment.ts";

const SECRETS = join(import.meta.dirname, "../../.dev.vars");
const [name] = process.argv.slice(2);
const { WRANGLER_COMMAND = "", SKIP_DEPLOY_CHECK } = process.env;
// Without a newline at the end, which Wrangler would print as an empty line.
const print = (text: string) => process.stdout.write(text);

// Without an environment, Wrangler itself warns.
if (name && ["deploy", "versions upload"].includes(WRANGLER_COMMAND) && !SKIP_DEPLOY_CHECK) {
  const advice = "Nothing was deployed. Wrangler now reports a failed build: ignore the 100 lines that follow.";
  await checkDeployment(name).catch(({ message }: Error) => exit(`${message}\n${advice}`, 1));
}
try {
  // Nothing else here imports src/, where an error must not stop `wrangler dev`.
  (await import("./site.ts")).buildSite();
} catch (error) {
  // In `wrangler dev`, esbuild reports an error in the code best, but runs only if this step succeeds.
  if (WRANGLER_COMMAND !== "dev") throw error;
  console.error("The API reference was not updated:", error);
}
if (WRANGLER_COMMAND === "dev") await prepareLocalService();

/** Says what `wrangler deploy` leaves out. Throws if it would create a database near this computer, for good. */
async function checkDeployment(name: string): Promise<void> {
  const environment = readEnvironment(name);
  const exists = await hasDatabase(environment).catch((failure: Error) => {
    // Signed out, nothing can be deployed, but a dry run works.
    if (failure.message.includes("CLOUDFLARE_API_TOKEN environment variable")) return true;
    throw failure;
  });
  if (!exists) {
    throw new Error(`The database ${environment.database} does not exist. Create it first, because its location cannot be changed later:
see "With Wrangler alone" in docs/OPERATIONS.md.`);
  }
  print(`This does not apply migrations or run the smoke test. npm run deploy:${name} does both (docs/OPERATIONS.md).`);
}

/** Creates what a fresh clone lacks, the local key and tables, and prints what a newcomer needs. Throws WranglerFailed. */
async function prepareLocalService(): Promise<void> {
  cpSync(`${SECRETS}.example`, SECRETS, { force: false });
  await applyLocalMigrations();
  const [key] = (parseEnv(readFileSync(SECRETS, "utf8"))["API_KEY"] ?? "").split(",");
  print(`The API reference is at /, the service at /v1, and its key is ${key} (.dev.vars).
To empty the store, stop the service and remove .wrangler/state.`);
}
