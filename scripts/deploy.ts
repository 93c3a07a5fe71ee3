// A deployment, from top to bottom: `npm run deploy` to staging, where it is tested, and then to production;
// `npm run deploy:<environment>` to one of them. It is Wrangler's own commands, with their own output, in an order in
// which each leaves a service that works, and each can be repeated. So nothing is undone, and after any failure or
// interruption the same command goes on.

import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requireCleanCommit } from "./commit.ts";
import { ENVIRONMENTS, type Environment } from "./environment.ts";
import { readKey } from "./read-key.ts";
import { servingCommit, waitUntilServed } from "./serving.ts";
import { runNode, wrangler } from "./wrangler.ts";

const VITEST = join(import.meta.dirname, "../node_modules/vitest/vitest.mjs");

/** Set in the workflow, which tests a commit in staging before it deploys to production. */
const { GITHUB_OUTPUT } = process.env;

const printStep = (step: string) => console.log(`\n== ${step}\n`);

/** Tests over HTTP. `mode`: see vitest.config.ts. */
const runTests = (mode: "smoke" | "deployed", base: string, key: string) =>
  runNode([VITEST, "run", "--mode", mode], { env: { SERVICE_URL: base, API_KEY: key } });

/** Returns the base URL. */
async function deploy(environment: Environment, commit: string, key: string): Promise<string> {
  const section = ["--env", environment];
  printStep(`${environment}: the way back: the commit that serves (its tag), and the bookmark of the database`);
  wrangler(["deployments", "status", ...section]);
  wrangler(["d1", "time-travel", "info", "DB", ...section]);

  // The version that serves now must work with the new tables, too.
  printStep(`${environment}: migrations`);
  requireCommit(commit);
  wrangler(["d1", "migrations", "apply", "DB", ...section, "--remote"]);

  printStep(`${environment}: commit ${commit}`);
  requireCommit(commit);
  const base = release(environment, commit);
  if (GITHUB_OUTPUT) appendFileSync(GITHUB_OUTPUT, `url=${base}\n`);

  printStep(`${environment}: waiting until ${base} serves it, for at most three minutes`);
  await waitUntilServed(base, commit);

  printStep(`${environment}: smoke test`);
  runTests("smoke", base, key);
  return base;
}

/** Throws unless the folder is still at this commit: the tests in staging take a while. */
function requireCommit(commit: string): void {
  if (requireCleanCommit() !== commit)
    throw new Error(`The deployment began at commit ${commit}, and this folder is at a different one now.`);
}

/** Puts the commit live. Returns the base URL that Wrangler reports. */
function release(environment: Environment, commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  const report = join(folder, "report.jsonl");
  // scripts/build/build.ts reads IN_DEPLOYMENT.
  const env = { WRANGLER_OUTPUT_FILE_PATH: report, IN_DEPLOYMENT: "true" };
  wrangler(["deploy", "--env", environment, "--tag", commit], { env });
  const lines = readFileSync(report, "utf8").trim().split("\n");
  rmSync(folder, { recursive: true });
  return baseIn(lines.map((line) => JSON.parse(line)).findLast(({ type }) => type === "deploy").targets);
}

/**
 * The base URL of the first address among the targets. One of workers.dev works at once, a new domain later. Throws if
 * there is neither.
 */
export function baseIn(targets: string[]): string {
  const url = targets.find((target) => /^https?:\/\//.test(target));
  const [, domain] = targets.map((target) => /^(\S+) \(custom domain/.exec(target)).find(Boolean) ?? [];
  if (!url && !domain) throw new Error("Wrangler reports no address of workers.dev and no custom domain.");
  return `${url ?? `https://${domain}`}/v1`;
}

/** Deploys to staging, tests the commit there, and deploys it to production. */
async function deployToBoth(commit: string): Promise<void> {
  const stagingKey = await readKey("API key of staging (not shown):");
  if (!stagingKey)
    throw new Error("The tests in staging need one of its API keys: enter it on a terminal, or set API_KEY.");
  // Not from the variable API_KEY, which has staging's key.
  const productionKey = await readKey("API key of production (not shown; without one, less is tested):", {});
  if (productionKey === stagingKey) throw new Error("Production must not have an API key of staging.");
  const base = await deploy("staging", commit, stagingKey);
  printStep("staging: all tests over HTTP");
  runTests("deployed", base, stagingKey);
  const serving = await servingCommit(base);
  if (serving !== commit) throw new Error(`Staging serves ${serving} now, which was not tested.`);
  await deploy("production", commit, productionKey);
}

/** Deploys to one environment. */
async function deployTo(environment: Environment, commit: string): Promise<void> {
  if (environment === "production" && !GITHUB_OUTPUT)
    console.log("This commit is not tested in staging first: npm run deploy does that.");
  const key = await readKey(`API key of ${environment} (not shown; without one, less is tested):`);
  await deploy(environment, commit, key);
}

if (import.meta.main) {
  try {
    const [name, ...more] = process.argv.slice(2);
    const environment = ENVIRONMENTS.find((known) => known === name);
    if (more.length > 0 || (name && !environment))
      throw new Error("usage: npm run deploy, or npm run deploy:<environment>");
    const commit = requireCleanCommit();
    await (environment ? deployTo(environment, commit) : deployToBoth(commit));
    console.log(`\nCommit ${commit} is deployed.`);
  } catch (failure) {
    console.error(`\n${(failure as Error).message}
The page of an environment names the commit that serves there. Correct the cause, and run the same command again, or go
back: docs/OPERATIONS.md.`);
    process.exitCode = 1;
  }
}
