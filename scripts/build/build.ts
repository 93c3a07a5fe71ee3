// Prepares what Wrangler serves: the site and, for `wrangler dev`, the local service. Wrangler runs it before most of
// its commands (wrangler.toml, [build]).

import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { WITHOUT_ACCOUNT } from "../environment.ts";
import { ROOT, wrangler } from "../wrangler.ts";

const SECRETS = join(ROOT, ".dev.vars");
// Next to the local database, so that removing the store removes this too.
const APPLIED = join(ROOT, ".wrangler/state/v3/d1/applied-migrations.txt");
const { WRANGLER_COMMAND } = process.env;
const isDev = WRANGLER_COMMAND === "dev";

// Types need nothing of this, and an error in src/ must not stop `npm ci`, which makes them.
if (WRANGLER_COMMAND === "types") process.exit();
if (isDev) {
  // What a fresh clone lacks: the local key and tables.
  cpSync(`${SECRETS}.example`, SECRETS, { force: false });
  applyLocalMigrations();
}
// Wrangler passes them on, and what follows imports packages.
for (const name in WITHOUT_ACCOUNT) delete process.env[name];
try {
  // Nothing else here imports src/, in which an error must not stop `wrangler dev`.
  (await import("./site.ts")).buildSite();
  if (isDev) await introduce();
} catch (error) {
  // In `wrangler dev`, esbuild reports an error in the code best, but runs only if this step succeeds.
  if (!isDev) throw error;
  console.error("The site was not updated:", error);
}

/** Prints what a newcomer needs. */
async function introduce(): Promise<void> {
  const { isKey, whyIgnored } = await import("../../src/http/authentication.ts");
  const { API_KEY = "" } = parseEnv(readFileSync(SECRETS, "utf8"));
  const key = isKey(API_KEY) ? `Its API key is ${API_KEY} (.dev.vars).` : `In .dev.vars: ${whyIgnored("API_KEY")}`;
  console.log(`The page for callers is at / and the service at /v1. ${key}
To empty the store, stop the service and remove .wrangler/state.`);
}

/** Wrangler takes a second, so it runs only if the names of the migrations are not those of the last time. */
function applyLocalMigrations(): void {
  const migrations = readdirSync(join(ROOT, "migrations")).sort().join("\n");
  if (existsSync(APPLIED) && readFileSync(APPLIED, "utf8") === migrations) return;
  wrangler(["d1", "migrations", "apply", "DB", "--local"], { output: "pipe" });
  writeFileSync(APPLIED, migrations);
}
