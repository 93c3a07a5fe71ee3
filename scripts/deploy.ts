// A deployment, from top to bottom: `npm run deploy` to staging and then to production, `npm run deploy:<environment>`
// to one of them. It is Wrangler's own commands, with their own output, in an order in which each leaves a service that
// works, and each can be repeated. So nothing is undone, and after any failure or interruption the same command
// continues.

import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { requireCleanCommit } from "./commit.ts";
import { ENVIRONMENTS, type Environment } from "./environment.ts";
import { readKey } from "./read-key.ts";
import { waitUntilServed } from "./wait-for-commit.ts";
import { runNode, wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

// The tests run many packages, Chromium and the programs of the guide, which must not get a workflow's token. (They
// could read a person's login, which is in the home folder.)
const CLOUDFLARE = Object.keys(process.env).filter((name) => /^(CLOUDFLARE|CF)_/.test(name));
const WITHOUT_ACCOUNT = Object.fromEntries(CLOUDFLARE.map((name) => [name, undefined]));

const printStep = (step: string) => console.log(`\n== ${step}\n`);

/**
 * Deploys the commit, tests it with an API key of the environment, and checks that it serves after that, too. Returns
 * what serves, as a line for the operator.
 */
async function deploy(environment: Environment, commit: string, key: string): Promise<string> {
  const section = ["--env", environment];
  printStep(`${environment}: the way back: the commits that were deployed (tags), and the bookmark of the database`);
  wrangler(["deployments", "list", ...section]);
  wrangler(["d1", "time-travel", "info", "DB", ...section]);

  // The version that serves now must work with the new tables, too.
  printStep(`${environment}: migrations`);
  requireCommit(commit);
  wrangler(["d1", "migrations", "apply", "DB", ...section, "--remote"]);

  printStep(`${environment}: commit ${commit}`);
  requireCommit(commit);
  const base = deployCode(environment, commit);

  printStep(`${environment}: waiting until ${base} serves it, for at most three minutes`);
  await waitUntilServed(base, commit);

  const mode = environment === "staging" ? "deployed" : "smoke"; // vitest.config.ts
  const tests = { deployed: "all tests, which leave animals", smoke: "the smoke test, which reads (staging runs all)" };
  printStep(`${environment}: ${tests[mode]}`);
  runNode([VITEST, "run", "--mode", mode], { env: { ...WITHOUT_ACCOUNT, SERVICE_URL: base, API_KEY: key } });

  printStep(`${environment}: checking that ${base} still serves it, for at most three minutes`);
  await waitUntilServed(base, commit);
  return `${environment} serves commit ${commit} at ${base}`;
}

/** Throws unless the folder is still at this commit: the tests in staging take a while. */
function requireCommit(commit: string): void {
  if (requireCleanCommit() !== commit)
    throw new Error(`The deployment began at commit ${commit}, and this folder is at a different one now.`);
}

/** Builds and deploys the code, which names its commit. Returns the base URL that Wrangler reports. */
function deployCode(environment: Environment, commit: string): string {
  const report = join(ROOT, `.wrangler/deployment-${environment}.jsonl`);
  rmSync(report, { force: true }); // Wrangler appends.
  // scripts/build/build.ts reads IN_DEPLOYMENT.
  const env = { WRANGLER_OUTPUT_FILE_PATH: report, IN_DEPLOYMENT: "true" };
  wrangler(["deploy", "--env", environment, "--tag", commit, "--define", `COMMIT:"${commit}"`], { env });
  const lines = readFileSync(report, "utf8").trim().split("\n");
  return baseUrlOf(lines.map((line) => JSON.parse(line)).find(({ type }) => type === "deploy").targets);
}

/**
 * The base URL of the first address among the targets. One of workers.dev works at once, a new domain later. Throws if
 * there is neither.
 */
export function baseUrlOf(targets: string[]): string {
  const url = targets.find((target) => /^https?:\/\//.test(target));
  const [, domain] = targets.map((target) => /^(\S+) \(custom domain/.exec(target)).find(Boolean) ?? [];
  if (!url && !domain) throw new Error("Wrangler reports no address of workers.dev and no custom domain.");
  return `${url ?? `https://${domain}`}/v1`;
}

/** Deploys to staging, tests the commit there, and deploys it to production. Returns what serves there, in lines. */
async function deployToBoth(commit: string): Promise<string> {
  const stagingKey = await readKey("API key of staging");
  // The variable API_KEY has staging's.
  const unattended = "without one, run npm run deploy:staging, and then npm run deploy:production";
  const productionKey = await readKey("API key of production", {}, `enter it on a terminal (${unattended})`);
  if (productionKey === stagingKey) throw new Error("Production must not have an API key of staging.");
  const staging = await deploy("staging", commit, stagingKey);
  const production = await deploy("production", commit, productionKey);
  return `${staging}\n${production}`;
}

if (import.meta.main) {
  try {
    const [name, ...more] = process.argv.slice(2);
    const environment = ENVIRONMENTS.find((known) => known === name);
    if (more.length > 0 || (name !== undefined && !environment))
      throw new Error("usage: npm run deploy, or npm run deploy:<environment>");
    const commit = requireCleanCommit();
    const serving = environment
      ? await deploy(environment, commit, await readKey(`API key of ${environment}`))
      : await deployToBoth(commit);
    console.log(`\n${serving}`);
  } catch (failure) {
    console.error(`\n${(failure as Error).message}
Worker-Version in each response names the commit that serves. If callers get errors, see "Symptoms" in
docs/OPERATIONS.md. Otherwise, correct the cause, and run the same command again.`);
    process.exitCode = 1;
  }
}
