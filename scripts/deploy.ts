// A deployment, from top to bottom: `npm run deploy` to staging and then to production, `npm run deploy:<environment>`
// to one of them, at HEAD or `-- <commit>`. It is Wrangler's own commands in a copy of the commit, with their own
// output, in an order in which each leaves a service that works, and each can be repeated. So nothing is undone, and
// after any failure or interruption the same command continues. What can be known to fail is tried first: the commit,
// the API keys, and the packages.

import { cpSync, existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { currentCommit, extractCommit, findCommit, installPackages, uncommittedFiles } from "./commit.ts";
import { addressIn, ENVIRONMENTS, type Environment, WITHOUT_ACCOUNT } from "./environment.ts";
import { askAboutKey } from "./key.ts";
import { enterKey, readKey } from "./read-key.ts";
import { removeAtExit } from "./remove-at-exit.ts";
import { isCommit, PATIENCE, servingCommit, waitUntilServed } from "./wait-for-commit.ts";
import { queryRows, ROOT, runNode, wrangler } from "./wrangler.ts";

/** What each environment had before this run, and what serves now: the last lines, where they are read. */
const summary: string[] = [];

/** How to deploy the commit that served before, once callers may have the new one. */
let wayBack = "";

const NEXT = `Worker-Version in each response names the commit that serves. If callers get errors, see "Symptoms" in
docs/OPERATIONS.md. Otherwise, correct the cause, and run the same command again.`;

const printStep = (step: string) => console.log(`\n== ${step}\n`);

/** Wrangler's report of the last deployment from this folder, which has the address. */
const reportOf = (environment: Environment) => join(ROOT, `.wrangler/deployment-${environment}.jsonl`);

/**
 * What a service says about a key. Throws, with `advice`, if it does not have the key. Anything else passes, such as an
 * error or no response: that is why one deploys.
 */
async function tryKey(base: string, key: string, advice = ""): Promise<string> {
  const { state, line } = await askAboutKey(base, key).catch(({ message }) => ({ state: "silent", line: message }));
  if (state === "unknown") throw new Error(`${line}\nIs it a key of a different environment?${advice}`);
  console.log(line);
  return state;
}

/** Deploys the commit, tests it with an API key of the environment, and checks that it still serves after that. */
async function deploy(environment: Environment, commit: string, folder: string, key: string): Promise<void> {
  const section = ["--env", environment];
  printStep(`${environment}: what serves, and the restore point of the database`);
  const report = reportOf(environment);
  const serving = existsSync(report) ? await servingCommit(addressIn(report)) : "an unknown commit (address not known)";
  const info = wrangler(["d1", "time-travel", "info", "DB", ...section, "--json"], { output: "pipe", folder });
  const { bookmark } = JSON.parse(info);
  summary.push(`Before this run, ${environment} served ${serving}, and the restore point was ${bookmark}.`);
  console.log(summary.at(-1));

  // The version that serves now must work with the new tables, too.
  printStep(`${environment}: migrations`);
  wrangler(["d1", "migrations", "apply", "DB", ...section, "--remote"], { folder });

  printStep(`${environment}: commit ${commit}`);
  wayBack = `To go back: npm run deploy:${environment} -- ${serving}`;
  if (!isCommit(serving) || serving === commit)
    wayBack = `To go back: npm run deploy:${environment} -- <commit>, with the tag of an earlier deployment in
npx wrangler deployments list --env ${environment} (a changed secret has no tag)`;
  const newReport = join(folder, `deployment-${environment}.jsonl`);
  const define = ["--define", `COMMIT:"${commit}"`];
  wrangler(["deploy", ...section, "--tag", commit, ...define], {
    env: { WRANGLER_OUTPUT_FILE_PATH: newReport },
    folder,
  });
  const base = addressIn(newReport);
  cpSync(newReport, report);
  summary.push(animalsOf(environment, folder));

  const minutes = `for at most ${PATIENCE / 60_000} minutes`;
  printStep(`${environment}: waiting until ${base} serves it, ${minutes}`);
  await waitUntilServed(base, commit);
  if ((await tryKey(base, key)) === "closed")
    summary.push(`${environment} is closed, so it cannot be tested. Callers get 503: open it with
npx wrangler secret delete MAINTENANCE --env ${environment}`);

  const mode = environment === "staging" ? "deployed" : "smoke"; // vitest.config.ts
  const tests = { deployed: "all tests, which leave animals", smoke: "the smoke test, which reads (staging runs all)" };
  printStep(`${environment}: ${tests[mode]}`);
  const env = { ...WITHOUT_ACCOUNT, SERVICE_URL: base, API_KEY: key };
  try {
    runNode([join(folder, "node_modules/vitest/vitest.mjs"), "run", "--mode", mode], { env, folder });
  } catch {
    throw new Error('The tests failed. If a migration is the cause, see "Undo a migration" in docs/OPERATIONS.md.');
  }

  printStep(`${environment}: checking that ${base} still serves it, ${minutes}`);
  await waitUntilServed(base, commit);
  summary.push(`${environment} serves commit ${commit} at ${base}`);
  wayBack = "";
}

/** What the environment has before its tests: by the greatest id, which also shows a backup that was not loaded. */
function animalsOf(environment: Environment, folder: string): string {
  try {
    const last = queryRows(environment, "SELECT CAST(max(id) AS TEXT) AS last FROM pets", folder)[0]?.["last"];
    return last ? `${environment} had animals up to the id ${last}` : `${environment} has no animals`;
  } catch (failure) {
    console.error((failure as Error).message);
    return `The animals of ${environment} cannot be read.`;
  }
}

/** The API key of each environment to deploy to: by default, staging and then production. */
async function readKeys(environment?: Environment): Promise<[Environment, string][]> {
  if (environment) return [[environment, await readKey(`API key of ${environment}`)]];
  const staging = await readKey("API key of staging");
  // The variable API_KEY has staging's.
  const unattended = "without one, run npm run deploy:staging, and then npm run deploy:production";
  const production = await enterKey("API key of production", `enter it on a terminal (${unattended})`);
  if (production === staging) throw new Error("Production must not have an API key of staging.");
  return [
    ["staging", staging],
    ["production", production],
  ];
}

try {
  const args = process.argv.slice(2);
  const environment = ENVIRONMENTS.find((known) => known === args[0]);
  const [name, ...more] = args.slice(environment ? 1 : 0);
  if (more.length > 0 || name === "" || name?.startsWith("-"))
    throw new Error(`usage: npm run deploy -- [<commit>], or npm run deploy:<environment> -- [<commit>]`);
  const hash = name ? findCommit(name) : currentCommit();
  const commit = hash.slice(0, 12);
  const uncommitted = name ? "" : uncommittedFiles();
  if (uncommitted) console.error(`Not committed, so not deployed: ${uncommitted}`);
  const keys = await readKeys(environment);
  for (const [each, key] of keys) {
    const report = reportOf(each);
    if (!existsSync(report)) continue;
    const base = addressIn(report);
    printStep(`${each}: trying the API key at ${base}`);
    await tryKey(base, key, `\nIf the service rejects every key, remove ${report}, and run this again.`);
  }

  printStep(`a copy of commit ${commit}, with its packages`);
  // Not in a folder in which others can write: Node also looks for packages in all folders above.
  const cache = join(homedir(), ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "animal-store-"));
  removeAtExit(folder);
  extractCommit(hash, folder);
  await installPackages(folder);
  for (const [each, key] of keys) await deploy(each, commit, folder, key);
  console.log(`\n${summary.join("\n")}`);
} catch (failure) {
  console.error(`\n${[...summary, (failure as Error).message].join("\n")}`);
  if (summary.length > 0) console.error(NEXT);
  if (wayBack) console.error(wayBack);
  process.exitCode = 1;
}
