// A deployment, from top to bottom: `npm run deploy` to staging and then to production, `npm run deploy:<environment>`
// to one of them. It is Wrangler's own commands, with their own output, in an order in which each leaves a service that
// works, and each can be repeated. So nothing is undone, and after any failure or interruption the same command
// continues. What can be known to fail is tried first: the commit, the packages, and the API keys.

import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { requireCleanCommit } from "./commit.ts";
import { ENVIRONMENTS, type Environment } from "./environment.ts";
import { askAboutKey } from "./key.ts";
import { readKey } from "./read-key.ts";
import { servingCommit, waitUntilServed } from "./wait-for-commit.ts";
import { runNode, wrangler } from "./wrangler.ts";

const ROOT = join(import.meta.dirname, "..");
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

// The tests run many packages, Chromium and the programs of the guide, which must not get a workflow's token. (They
// could read a person's login, which is in the home folder.)
const CLOUDFLARE = Object.keys(process.env).filter((name) => /^(CLOUDFLARE|CF)_/.test(name));
const WITHOUT_ACCOUNT = Object.fromEntries(CLOUDFLARE.map((name) => [name, undefined]));

/** What each environment had before this run, and what serves now: the last lines, where they are read. */
const summary: string[] = [];

const NEXT = `Worker-Version in each response names the commit that serves. If callers get errors, see "Symptoms" in
docs/OPERATIONS.md. Otherwise, correct the cause, and run the same command again.`;

const printStep = (step: string) => console.log(`\n== ${step}\n`);

/** Wrangler's report of the last deployment from this folder, which has the address. */
const reportOf = (environment: Environment) => join(ROOT, `.wrangler/deployment-${environment}.jsonl`);

/** The base URL in a report. */
function addressIn(report: string): string {
  const lines = readFileSync(report, "utf8").trim().split("\n");
  return baseUrlOf(lines.map((line) => JSON.parse(line)).find(({ type }) => type === "deploy").targets);
}

/**
 * What a service says about a key. Throws, with `advice`, if it does not have the key. Anything else passes, such as an
 * error or no response: that is why one deploys.
 */
async function tryKey(base: string, key: string, advice = ""): Promise<string> {
  const { state, line } = await askAboutKey(base, key).catch(({ message }) => ({ state: "silent", line: message }));
  if (state === "unknown") throw new Error(line + advice);
  console.log(line);
  return state;
}

/** Deploys the commit, tests it with an API key of the environment, and checks that it still serves after that. */
async function deploy(environment: Environment, commit: string, key: string): Promise<void> {
  const section = ["--env", environment];
  printStep(`${environment}: what serves, and the bookmark of the database`);
  const report = reportOf(environment);
  const serving = existsSync(report) ? await servingCommit(addressIn(report)) : "an unknown commit";
  const info = wrangler(["d1", "time-travel", "info", "DB", ...section, "--json"], { output: "pipe" });
  const { bookmark } = JSON.parse(info);
  summary.push(`Before this run, ${environment} served ${serving}, and the bookmark was ${bookmark}.`);
  console.log(summary.at(-1));

  // The version that serves now must work with the new tables, too.
  printStep(`${environment}: migrations`);
  requireCommit(commit);
  wrangler(["d1", "migrations", "apply", "DB", ...section, "--remote"]);

  printStep(`${environment}: commit ${commit}`);
  requireCommit(commit);
  const base = deployCode(environment, commit);

  printStep(`${environment}: waiting until ${base} serves it, for at most three minutes`);
  await waitUntilServed(base, commit);
  const isClosed = (await tryKey(base, key)) === "closed";

  const mode = environment === "staging" ? "deployed" : "smoke"; // vitest.config.ts
  const tests = { deployed: "all tests, which leave animals", smoke: "the smoke test, which reads (staging runs all)" };
  printStep(`${environment}: ${tests[mode]}`);
  try {
    runNode([VITEST, "run", "--mode", mode], { env: { ...WITHOUT_ACCOUNT, SERVICE_URL: base, API_KEY: key } });
  } catch {
    throw new Error('The tests failed. If a migration is the cause, see "Undo a migration" in docs/OPERATIONS.md.');
  }

  printStep(`${environment}: checking that ${base} still serves it, for at most three minutes`);
  await waitUntilServed(base, commit);
  summary.push(`${environment} serves commit ${commit} at ${base}${isClosed ? " (closed, so not tested)" : ""}`);
}

/** Throws unless the folder is still at this commit: the tests in staging take a while. */
function requireCommit(commit: string): void {
  if (requireCleanCommit() !== commit)
    throw new Error(`The deployment began at commit ${commit}, and this folder is at a different one now.`);
}

/** Builds and deploys the code, which names its commit. Returns the base URL that Wrangler reports. */
function deployCode(environment: Environment, commit: string): string {
  const report = reportOf(environment);
  const next = `${report}.new`;
  rmSync(next, { force: true }); // Wrangler appends.
  const env = { WRANGLER_OUTPUT_FILE_PATH: next };
  wrangler(["deploy", "--env", environment, "--tag", commit, "--define", `COMMIT:"${commit}"`], { env });
  const base = addressIn(next);
  renameSync(next, report);
  return base;
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

/** The API key of each environment to deploy to: by default, staging and then production. */
async function readKeys(environment?: Environment): Promise<[Environment, string][]> {
  if (environment) return [[environment, await readKey(`API key of ${environment}`)]];
  const staging = await readKey("API key of staging");
  // The variable API_KEY has staging's.
  const unattended = "without one, run npm run deploy:staging, and then npm run deploy:production";
  const production = await readKey("API key of production", {}, `enter it on a terminal (${unattended})`);
  if (production === staging) throw new Error("Production must not have an API key of staging.");
  return [
    ["staging", staging],
    ["production", production],
  ];
}

if (import.meta.main) {
  try {
    const [name, ...more] = process.argv.slice(2);
    const environment = ENVIRONMENTS.find((known) => known === name);
    if (more.length > 0 || (name !== undefined && !environment))
      throw new Error("usage: npm run deploy, or npm run deploy:<environment>");
    const commit = requireCleanCommit();
    const keys = await readKeys(environment);
    for (const [each, key] of keys) {
      const report = reportOf(each);
      if (!existsSync(report)) continue;
      const base = addressIn(report);
      printStep(`${each}: trying the API key at ${base}`);
      await tryKey(base, key, `\nIf it rejects every key, remove ${report}, and run this again.`);
    }
    for (const [each, key] of keys) await deploy(each, commit, key);
    console.log(`\n${summary.join("\n")}`);
  } catch (failure) {
    console.error(`\n${[...summary, (failure as Error).message].join("\n")}`);
    if (summary.length > 0) console.error(NEXT);
    process.exitCode = 1;
  }
}
