// Prepares what Wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before each
// `dev`, `deploy` and `types` (wrangler.toml, [build]).

import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { currentCommit } from "../commit.ts";
import { applyLocalMigrations } from "../environment.ts";

const SECRETS = join(import.meta.dirname, "../../.dev.vars");
const { WRANGLER_COMMAND, IN_DEPLOYMENT } = process.env;
const commit = currentCommit();

try {
  // Nothing else here imports src/, where an error must not stop `wrangler dev`.
  (await import("./site.ts")).buildSite(commit);
} catch (error) {
  // In `wrangler dev`, esbuild reports an error in the code best, but runs only if this step succeeds.
  if (WRANGLER_COMMAND !== "dev") throw error;
  console.error("The site was not updated:", error);
}
if (WRANGLER_COMMAND === "dev") await prepareLocalService();
// scripts/deploy.ts does what plain `wrangler deploy` leaves out.
if (WRANGLER_COMMAND === "deploy" && !IN_DEPLOYMENT) {
  console.log(`This is commit ${commit || "unknown"}, and callers get it without a test. Migrations are not applied.
npm run deploy does both. If the database does not exist, Wrangler creates it near this computer, for good.`);
}

/**
 * Creates what a fresh clone lacks, the local key and tables, and prints what a newcomer needs. Throws WranglerFailed.
 */
async function prepareLocalService(): Promise<void> {
  cpSync(`${SECRETS}.example`, SECRETS, { force: false });
  await applyLocalMigrations();
  const { API_KEY } = parseEnv(readFileSync(SECRETS, "utf8"));
  console.log(`The page for callers is at / and the service at /v1. Its API key is ${API_KEY} (.dev.vars).
To empty the store, stop the service and remove .wrangler/state.`);
}
