// A deployment, from top to bottom: `npm run deploy` to staging, where it is tested, and then to production;
// `npm run deploy:<environment>` to one of them. It is Wrangler's own commands, with their own output, in an order in
// which each leaves a service that works if the ones after it fail. Each can be repeated, so nothing is undone, and
// nothing is repeated automatically.

import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exit, onInterruption, readArguments, readKey } from "./command-line.ts";
import { committed } from "./commit.ts";
import { ENVIRONMENTS, type Environment, parseBase } from "./environment.ts";
import { commitOf, setBase, waitUntilServed } from "./serving.ts";
import { killTree, startNode, startWrangler, wrangler } from "./wrangler.ts";

const MAX_WAIT = 30_000; // milliseconds, after a signal
const VITEST = join(import.meta.dirname, "../node_modules/vitest/vitest.mjs");
const ON_TERMINAL = ["ignore", "inherit", "inherit"] as const;

/** What callers have if the deployment ends now, and what to do. Each step sets it. */
let ending = "Nothing has changed.";
/** Prints this, and ends the process: after a signal. */
let interruption: (() => never) | undefined;
/** The process that a signal does not end: Wrangler while it deploys, and Vitest, which gets SIGTERM instead. */
let awaited: { child: ChildProcess; isVitest?: boolean } | undefined;

function begin(step: string, whatCallersHave = ending): void {
  console.log(`\n== ${step}\n`);
  ending = whatCallersHave;
}

/** Runs a command to its end, after which a signal ends this process. Throws if the command fails. */
async function finish(child: ChildProcess, onEnd = (_isOk: boolean) => {}): Promise<void> {
  const [status] = await once(child, "close");
  awaited = undefined;
  onEnd(status === 0);
  interruption?.();
  if (status !== 0) throw new Error("The command above failed.");
}

/** Runs tests over HTTP. `mode`: see vitest.config.ts. */
async function runTests(mode: "deployed" | "smoke", base: string, key: string): Promise<void> {
  const child = startNode([VITEST, "run", "--mode", mode], [...ON_TERMINAL], { SMOKE_URL: base, API_KEY: key });
  awaited = { child, isVitest: true };
  await finish(child);
}

interface Task {
  environment: Environment;
  commit: string;
  /** Without one, the smoke test tests what needs none. */
  key: string;
  /** The base URL, if it differs from what Wrangler reports. */
  given?: string | undefined;
  /** What callers have in the other environment. */
  elsewhere?: string;
}

/** Returns the base URL. Throws with a message that `ending` completes. */
async function deploy({ environment, commit, key, given, elsewhere = "" }: Task): Promise<string> {
  const section = ["--env", environment];
  const again = `Correct the cause, and run the same command again. ${elsewhere}`;
  begin(`${environment}: the version that serves, and the bookmark of its database`, `Nothing has changed. ${again}`);
  console.log(await wrangler(["deployments", "status", ...section]));
  console.log(await wrangler(["d1", "time-travel", "info", "DB", ...section]));

  begin(
    `${environment}: migrations`,
    `Migrations may have been applied in ${environment}, and the version before still serves. It should work with them.
If it does not, or if they have damaged data: "A migration has damaged data" in docs/OPERATIONS.md. ${again}`,
  );
  await finish(startWrangler(["d1", "migrations", "apply", "DB", ...section, "--remote"], [...ON_TERMINAL]));
  if (committed() !== commit) throw new Error(`This folder was at commit ${commit}, and is at a different one now.`);

  begin(
    `${environment}: commit ${commit}`,
    `The page of ${environment} names the commit that serves. Until a deployment succeeds, Cloudflare may refuse to
change secrets. ${again}`,
  );
  const goBack = `If this commit is bad, go back: "A new version is bad" in docs/OPERATIONS.md. ${elsewhere}`;
  const { version, reported } = await release(environment, commit, () => {
    ending = `Commit ${commit} was deployed, and the page of ${environment} names the commit that serves. ${goBack}`;
  });
  const base = given ?? reported;
  if (!base) throw new Error(`Wrangler reports no address of this Worker. ${setBase(environment)}`);
  if (process.env["GITHUB_OUTPUT"]) appendFileSync(process.env["GITHUB_OUTPUT"], `url=${base}\n`);

  begin(`${environment}: waiting until ${base} answers`);
  await waitUntilServed(environment, base, commit, version);
  begin(`${environment}: smoke test`, `Commit ${commit} serves in ${environment}. ${goBack}`);
  await runTests("smoke", base, key);
  return base;
}

/** Puts the commit live, and calls `onLive`. Returns the id of the version, and the base URL that Wrangler reports. */
async function release(environment: Environment, commit: string, onLive: () => void) {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const report = join(folder, "report.jsonl");
  // The latter is for scripts/build/build.ts.
  const env = { WRANGLER_OUTPUT_FILE_PATH: report, IN_DEPLOYMENT: "true" };
  const child = startWrangler(["deploy", "--env", environment, "--tag", commit], [...ON_TERMINAL], env);
  awaited = { child };
  await finish(child, (isOk) => isOk && onLive());
  const lines = readFileSync(report, "utf8").trim().split("\n");
  const { version_id, targets } = lines.map((line) => JSON.parse(line)).findLast(({ type }) => type === "deploy");
  return { version: String(version_id), reported: baseIn(targets) };
}

/** The base URL of the first address that Wrangler reports. A workers.dev address works at once, a new domain later. */
function baseIn(targets: string[]): string | undefined {
  const url = targets.find((target) => URL.canParse(target));
  const [, domain] = targets.map((target) => /^(\S+) \(custom domain/.exec(target)).find(Boolean) ?? [];
  return url || domain ? `${url ?? `https://${domain}`}/v1` : undefined;
}

/** Deploys to staging, tests the commit there, and deploys it to production. */
async function deployAll(commit: string, given: string | undefined): Promise<void> {
  const stagingKey = await readKey("API key of staging (not shown):");
  if (!stagingKey) throw new Error("The tests in staging need one of its API keys: set API_KEY, or use a terminal.");
  // Not that of the environment variable API_KEY, which is staging's.
  const productionKey = await readKey("API key of production (not shown; without one, less is tested):", {});
  const elsewhere = "Production has not been touched.";
  const base = await deploy({ environment: "staging", commit, key: stagingKey, given, elsewhere });
  begin(
    "staging: all tests over HTTP",
    `Commit ${commit} is live in staging, and not tested. ${elsewhere}
Correct it and deploy again, or go back: "A new version is bad" in docs/OPERATIONS.md.`,
  );
  await runTests("deployed", base, stagingKey);
  const tested = await commitOf(base);
  if (tested !== commit) throw new Error(`The page of staging names commit ${tested} now, which was not tested.`);
  await deploy({ environment: "production", commit, key: productionKey, elsewhere: "Staging has this commit." });
}

const [name, given] = await readArguments(
  "npm run deploy, or npm run deploy:<environment>",
  ([name, ...others], env) => {
    const environment = ENVIRONMENTS.find((known) => known === name);
    if (others.length > 0 || (name && !environment))
      throw new Error(`Name one of ${ENVIRONMENTS.join(", ")}, or none.`);
    // A workflow sets it to an empty string if its variable is not set.
    return [environment, env["SMOKE_URL"] ? parseBase("SMOKE_URL", env["SMOKE_URL"]) : undefined] as const;
  },
);
onInterruption((signal, status) => {
  if (interruption) return;
  interruption = () => exit(`\n${signal} has ended the deployment. ${ending}`, status);
  if (!awaited) interruption();
  setTimeout(interruption, MAX_WAIT);
  if (awaited?.isVitest) killTree(awaited.child, "SIGTERM");
  else console.error(`\n${signal}: waiting for Wrangler, for at most ${MAX_WAIT / 1000} seconds.`);
});
try {
  const commit = committed();
  spawnSync("git", ["--no-pager", "log", "-1", "--oneline", "--decorate"], { stdio: "inherit" });
  if (name === "production") console.log("This commit is not tested in staging first: npm run deploy does that.");
  if (name) {
    const key = await readKey(`API key of ${name} (not shown; without one, less is tested):`);
    await deploy({ environment: name, commit, key, given });
  } else await deployAll(commit, given);
  console.log(`\nCommit ${commit} is deployed.`);
} catch (failure) {
  exit(`\nThe deployment failed. ${(failure as Error).message}\n${ending}`, 1);
}
