// Deploys a commit to an environment: `npm run deploy:<environment>`. It is tested on the environment's trial Worker,
// which nobody calls and which has a database of its own, and then put live by Wrangler's own `deploy`. So what fails
// the test has changed nothing that callers use, and the latest version of a Worker is the one that serves.

import { appendFileSync } from "node:fs";
import { exit, onInterruption, readArguments } from "../command-line.ts";
import { committed, distance } from "../commit.ts";
import { readEnvironment, secretNames, trialOf } from "../environment.ts";
import { retry, wrangler } from "../wrangler.ts";
import { INTERVAL } from "./poll.ts";
import { parseBase, SmokeFailed, smoke, waitUntilReady } from "./smoke.ts";
import { dropTables, trialDatabase } from "./trial.ts";
import { deployWorker, live } from "./worker.ts";

// A new version takes some seconds to be known everywhere. More than 90 have been seen.
const PATIENCE = 180_000; // milliseconds

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

/** How far a deployment is. It sets this in each step, so it is true whatever ends it: a failure or a signal. */
export interface Progress {
  /** What callers have if the deployment ends now, and what to do next. */
  ending: string;
  /** While Wrangler puts the version live: settles when it has ended. */
  release?: Promise<unknown> | undefined;
}

/**
 * Throws with a message for the operator, which `progress.ending` completes, unless the commit is live, or what
 * somebody else has put live since. `interval` and `patience`: as for poll().
 */
export async function deploy(
  { environment: { name, worker }, given, githubOutput }: ReturnType<typeof readTask>,
  progress: Progress,
  { run = wrangler, readCommit = committed, interval = INTERVAL, patience = PATIENCE } = {},
): Promise<void> {
  const trial = trialOf(name);
  const limits = { interval, patience };
  const again = `To deploy again: npm run deploy:${name}`;
  const unchanged = `Nothing has changed in ${worker}.`;
  const begin = (step: string, ending = progress.ending) => {
    console.log(`\n== ${name}: ${step}\n`);
    progress.ending = ending;
  };
  /** For a command that does no harm if it is repeated: tries it once more if it fails. */
  const runTwice: typeof run = (args, options) => retry(() => run(args, options), interval, 2);
  const migrate = async (database: string, section: string) =>
    console.log(await run(["d1", "migrations", "apply", database, "--env", section, "--remote"]));

  progress.ending = `${unchanged} ${again}`;
  const commit = readCommit();
  const place = distance();
  begin(`Commit ${commit}${place && ` (${place})`}`);
  const database = trialDatabase(name);
  const secrets = await secretNames(name, runTwice);
  if (!secrets.includes("API_KEY")) {
    throw new Error(`The Worker ${worker} has no secret API_KEY, without which Wrangler deploys nothing. Set it:
npx wrangler secret put API_KEY --env ${name}`);
  }
  const first = await live(runTwice, name);

  begin(`Trial Worker ${worker}-trial`);
  const key = crypto.randomUUID();
  const { version: tested, base: trialBase = "" } = await deployWorker(runTwice, trial, commit, { API_KEY: key });
  console.log(`Version ${tested} at ${trialBase}`);
  begin(
    `Tables of ${database}`,
    `${unchanged} ${again}\nIf its tables cannot be dropped, delete the trial before, in a terminal:
npx wrangler delete --env ${trial}\nnpx wrangler d1 delete ${database}`,
  );
  await dropTables(name, database, runTwice);
  progress.ending = `${unchanged} If a migration is wrong, correct the commit, and deploy. ${again}`;
  await migrate(database, trial);
  const minutes = patience / 60_000;
  begin(`Smoke test. Each request is repeated for up to ${minutes} minutes`, `${unchanged} ${again}`);
  await smoke({ base: trialBase, version: tested, key, isTrial: true }, limits).catch((failure: Error) => {
    failure.message +=
      failure instanceof SmokeFailed
        ? `\nThe log of ${worker}-trial has the cause. Correct the commit, and deploy.`
        : "\nCloudflare may need longer, or there is another deployment: let it end.";
    throw failure;
  });

  const requireSameCommit = () => {
    if (readCommit() !== commit) throw new Error(`This folder was at commit ${commit}, and is at a different one now.`);
  };
  requireSameCommit();
  begin('Bookmark of the database, for "Data is wrong or gone" in docs/OPERATIONS.md');
  console.log(JSON.parse(await runTwice(["d1", "time-travel", "info", "DB", "--env", name, "--json"])).bookmark);
  begin(
    "Migrations",
    `Migrations may have been applied to the database of ${worker}. The version that serves should work with them. If
callers get errors, deploy again, or return to the bookmark: "Data is wrong or gone" in docs/OPERATIONS.md.
If a migration is wrong, correct the commit, and deploy. ${again}`,
  );
  await migrate("DB", name);
  const before = await live(runTwice, name);
  if (before !== first) {
    console.log(`Somebody has deployed or changed a secret meanwhile: ${worker} served ${first}, and now ${before}`);
  }
  requireSameCommit();

  begin(
    `Deployment of commit ${commit}`,
    `The page of ${worker} names the commit that serves. Until a deployment succeeds, Cloudflare may refuse to change
secrets. ${again}`,
  );
  const release = deployWorker(runTwice, name, commit).catch(async (failure: Error) => {
    const now = await live(run, name).catch(() => "an unknown version");
    failure.message += `\n${worker} served ${before} before, and serves ${now} now.
If that is a new version, only its settings or addresses failed: repeating does not help if a permission is missing.`;
    throw failure;
  });
  progress.release = release;
  const { version, base: reported, warnings } = await release;
  progress.release = undefined;
  const base = given ?? reported;
  const goBack = `The version before: ${before}\nTo go back: "A new version is bad" in docs/OPERATIONS.md.`;
  progress.ending = `Version ${version} is live. ${goBack}`;
  if (githubOutput && base) appendFileSync(githubOutput, `url=${base}\n`);
  if (!base) throw new Error("Wrangler reports no address of this Worker: set SMOKE_URL to the base URL.");

  begin(`Version ${version} is live. Waiting until it answers at ${base}`);
  try {
    await waitUntilReady({ base, version }, limits);
    console.log(`Commit ${commit} is deployed: version ${version} of ${worker} answers at ${base}`);
  } catch (failure) {
    const { message } = failure as Error;
    const now = await live(runTwice, name).catch(() => version);
    if (now === version) throw new Error(given ? `${message}\nIf SMOKE_URL is wrong, correct it.` : message);
    console.log(`Somebody has deployed or changed a secret since: ${worker} serves ${now} now.`);
  }
  // Wrangler sends these after the upload, and only warns if that fails.
  if (warnings.includes("Could not apply service and environment tags")) {
    throw new Error(`${worker} is live, but its settings were not sent, such as those of logs and traces. ${again}`);
  }
  console.log(goBack);
  if (secrets.includes("MAINTENANCE")) {
    console.log("The service was closed when this began. Open it when your procedure says so.");
  }
}

const MAX_WAIT = 30_000; // milliseconds

if (import.meta.main) {
  const task = await readArguments("npm run deploy:<environment>", readTask);
  const { name } = task.environment;
  const progress: Progress = { ending: "" };
  onInterruption((signal, status) => {
    const end = () => exit(`\n${signal} has ended the deployment of ${name}. ${progress.ending}`, status);
    if (!progress.release) end();
    // After an upload without its deployment, Cloudflare would refuse to change secrets.
    console.error(`\n${signal}: waiting for Wrangler, for at most ${MAX_WAIT / 1000} seconds.`);
    progress.release?.then(end, end);
    setTimeout(end, MAX_WAIT);
  });
  await deploy(task, progress).catch(({ message }: Error) =>
    exit(`\nThe deployment of ${name} failed. ${message}\n${progress.ending}`, 1),
  );
}
