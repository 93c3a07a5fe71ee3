// Deploys a commit to an environment: `npm run deploy:<environment>`. It is tested on the environment's trial Worker,
// which nobody calls, and then put live by Wrangler's own `deploy`. So whatever ends a deployment before that leaves
// alone what callers get: nothing has to be undone, and the latest version of a Worker is the one that serves.

import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exit, onInterruption, printable, readArguments } from "../command-line.ts";
import { committed, distance } from "../commit.ts";
import { readEnvironment, secretNames, trialOf } from "../environment.ts";
import { retry, WranglerFailed, wrangler } from "../wrangler.ts";
import { makeTrialKey } from "./gate.ts";
import { INTERVAL } from "./poll.ts";
import { parseBase, smoke, waitUntilReady } from "./smoke.ts";

// A new version takes some seconds to be known everywhere. More than 90 have been seen.
const PATIENCE = 180_000; // milliseconds

type Run = typeof wrangler;
type Task = ReturnType<typeof readTask>;

/** What to deploy. Throws with a message for the operator. */
export function readTask([name = "", ...flags]: string[], env: NodeJS.Dict<string>) {
  if (flags.length > 0) throw new Error("A deployment has no flags.");
  return {
    environment: readEnvironment(name),
    /** If it differs from what Wrangler reports. A workflow sets it to an empty string if its variable is not set. */
    given: env["SMOKE_URL"] ? parseBase("SMOKE_URL", env["SMOKE_URL"]) : undefined,
    githubOutput: env["GITHUB_OUTPUT"],
  };
}

/** A failure whose message ends with the command that comes next. */
class Refused extends Error {}

/**
 * Throws with a message for the operator unless the commit is live, or what somebody else has put live since. If
 * `signal` is aborted, stops after the current Wrangler command. `interval` and `patience`: as for poll().
 */
export async function deploy(
  { environment: { name, worker }, given, githubOutput }: Task,
  signal: AbortSignal,
  { run = wrangler, readCommit = committed, interval = INTERVAL, patience = PATIENCE } = {},
): Promise<void> {
  const again = `npm run deploy:${name}`;
  const trial = trialOf(name);
  const limits = { interval, patience, signal };
  const begin = (step: string) => {
    signal.throwIfAborted();
    console.log(`\n== ${name}: ${step}\n`);
  };

  /** The commit of the folder. Throws Refused if it has changes that are not committed, or Git fails. */
  function commitToDeploy(): string {
    try {
      return readCommit();
    } catch (failure) {
      throw new Refused(`${(failure as Error).message}
A deployment takes a commit. Commit what you want to deploy, or deploy the folder as it is, without a test:
npx wrangler deploy --env ${name}`);
    }
  }

  /** Everything before callers are affected. Returns the commit, and what serves. */
  async function test(): Promise<[commit: string, before: string]> {
    const commit = commitToDeploy();
    const place = distance();
    begin(`Commit ${commit}${place && ` (${place})`}`);
    if (!(await secretNames(name, run, interval)).includes("API_KEY")) {
      throw new Refused(`The Worker ${worker} has no secret API_KEY, without which Wrangler deploys nothing. Set it:
npx wrangler secret put API_KEY --env ${name}`);
    }
    begin('Bookmark of the database, for "Data is wrong or gone" in docs/OPERATIONS.md');
    console.log(JSON.parse(await run(["d1", "time-travel", "info", "DB", "--env", name, "--json"])).bookmark);
    begin("Migrations");
    console.log(await run(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]));

    begin(`Trial Worker ${worker}-trial`);
    const key = makeTrialKey();
    const { version, base = "" } = await deployWorker(run, trial, commit, { API_KEY: key });
    console.log(`Version ${version} at ${base}`);
    begin(`Smoke test of the trial Worker. Each request is repeated for up to ${patience / 60_000} minutes`);
    await smoke({ base, version, key, isTrial: true }, limits).catch(async (failure: Error) => {
      const now = await live(run, trial).catch(() => "");
      if (signal.aborted || !now || now === `${version}@100%`) throw failure;
      throw new Refused(`Another deployment has put a different version on the trial Worker since: ${now}
Wait until it has ended, and deploy again:\n${again}`);
    });

    const before = await live(run, name);
    begin(`Deployment of commit ${commit}`);
    if (commitToDeploy() !== commit) {
      throw new Refused(`This folder was at commit ${commit}, and is at a different one now. Deploy again:\n${again}`);
    }
    return [commit, before];
  }

  /** Puts the commit live. Wrangler's command can be repeated, so it is tried twice. */
  async function release(commit: string, before: string) {
    try {
      return await deployWorker(run, name, commit).catch((failure: Error) => {
        if (signal.aborted) throw failure;
        console.error(`${failure.message}\nTrying once more.`);
        return deployWorker(run, name, commit);
      });
    } catch (failure) {
      const now = await live(run, name).catch(() => "an unknown version");
      throw new Error(`${(failure as Error).message}
${worker} serves ${now} now. The version before: ${before}
Until a deployment succeeds, Cloudflare may refuse to change secrets. Deploy again:\n${again}`);
    }
  }

  /** Waits until the version answers. Not if somebody has put a different one live since, as a changed secret does. */
  async function confirm(version: string, base: string | undefined, before: string): Promise<void> {
    try {
      if (!base) throw new Error("Wrangler reports no address of this Worker: set SMOKE_URL to the base URL.");
      begin(`Version ${version} is live. Waiting until it answers at ${base}`);
      await waitUntilReady({ base, version }, limits);
      console.log(`${worker}: version ${version} serves all requests at ${base}`);
    } catch (failure) {
      const { message } = failure as Error;
      if (signal.aborted) {
        throw new Error(`${message}\nVersion ${version} is live. To see whether it answers: npm run smoke -- ${base}`);
      }
      const now = await retry(() => live(run, name), interval).catch(() => "");
      if (!now || now === `${version}@100%`) {
        throw new Error(`${message}
Version ${version} is live, but does not answer as expected. The version before: ${before}
See "All callers get errors" in docs/OPERATIONS.md or, to go back, "A new version is bad".`);
      }
      console.log(`Somebody has changed a secret or deployed since: ${worker} serves ${now} now.`);
    }
  }

  const [commit, before] = await test().catch((failure: Error) => {
    const hasNext = failure instanceof Refused || (failure instanceof WranglerFailed && failure.hasRemedy);
    const next = signal.aborted ? `To deploy: ${again}` : 'See "A deployment failed" in docs/OPERATIONS.md.';
    throw new Error(`This deployment has not changed ${worker}.\n${failure.message}${hasNext ? "" : `\n${next}`}`);
  });
  const { version, base: reported } = await release(commit, before);
  const base = given ?? reported;
  if (githubOutput && base) appendFileSync(githubOutput, `url=${base}\n`);
  await confirm(version, base, before);
  console.log(`The version before: ${before}. To go back: "A new version is bad" in docs/OPERATIONS.md.`);
  const secrets = await secretNames(name, run, interval).catch(() => undefined);
  if (!secrets) console.log(`Whether the service is closed could not be read: npx wrangler secret list --env ${name}`);
  else if (secrets.includes("MAINTENANCE")) {
    console.log('The service is closed for maintenance: "Open the service" in docs/OPERATIONS.md.');
  }
}

/** The versions that serve, the greatest share first, as Wrangler writes them: `1234@100%`. Throws WranglerFailed. */
async function live(run: Run, section: string): Promise<string> {
  const deployment: { versions: { version_id: string; percentage: number }[] } = JSON.parse(
    await run(["deployments", "status", "--json", "--env", section]),
  );
  const versions = deployment.versions.toSorted((a, b) => b.percentage - a.percentage);
  return versions.map(({ version_id, percentage }) => `${version_id}@${percentage}%`).join(" ");
}

/**
 * Deploys a section of wrangler.toml, with these secrets in addition to its own. Returns the new version and its base
 * URL, if any. Throws WranglerFailed.
 */
async function deployWorker(run: Run, section: string, commit: string, secrets?: Record<string, string>) {
  // Only its owner can read it.
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const [report, file] = [join(folder, "report.jsonl"), join(folder, "secrets.json")];
  try {
    if (secrets) writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 });
    await run(["deploy", "--env", section, "--tag", commit, ...(secrets ? ["--secrets-file", file] : [])], {
      // The latter is for scripts/build/build.ts.
      env: { WRANGLER_OUTPUT_FILE_PATH: report, IS_TESTED: "true" },
      warn: (text) => console.error(printable(text)),
    });
    const records = readFileSync(report, "utf8").trim().split("\n");
    const { version_id, targets } = records.map((line) => JSON.parse(line)).find(({ type }) => type === "deploy");
    return { version: String(version_id), base: baseIn(targets) };
  } finally {
    remove();
    process.off("exit", remove);
  }
}

/** The base URL of the first address that Wrangler reports. A workers.dev address works at once, a new domain later. */
export function baseIn(targets: string[]): string | undefined {
  const url = targets.find((target) => URL.canParse(target));
  const [, domain] = targets.map((target) => /^(\S+) \(custom domain/.exec(target)).find(Boolean) ?? [];
  return url || domain ? `${url ?? `https://${domain}`}/v1` : undefined;
}

// One Ctrl-C arrives twice, within milliseconds, if npm passes it on too: that depends on its shell.
const SAME_KEY_PRESS = 500; // milliseconds

if (import.meta.main) {
  const task = await readArguments("npm run deploy:<environment>", readTask);
  const { name } = task.environment;
  const interruption = new AbortController();
  let [interrupted, status] = [0, 1];
  onInterruption((signal, code) => {
    if (interrupted === 0) {
      [interrupted, status] = [Date.now(), code];
      console.error(`\n${signal}: stopping after the current Wrangler command. Press Ctrl-C again to end at once.`);
      interruption.abort(new Error(`Interrupted by ${signal}.`));
    } else if (signal === "SIGINT" && Date.now() - interrupted > SAME_KEY_PRESS) {
      exit(
        `\nEnded at once. If "Deployment" is not among the steps above, callers get the same code as before. If it is,
Cloudflare may refuse to change secrets until a deployment succeeds:\nnpm run deploy:${name}`,
        code,
      );
    }
  });
  await deploy(task, interruption.signal).catch(({ message }: Error) =>
    exit(`\nThe deployment of ${name} failed. ${message}`, status),
  );
}
