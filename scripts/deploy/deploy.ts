// Deploys an environment: `npm run deploy:<environment>`. It applies the migrations, and puts a test between the upload of a
// version and its traffic. The order of the steps protects callers: until the last one they get the current version, and then one
// that has passed the test, so their traffic never has to be given back. (Migrations, addresses and settings take effect before.)

import { appendFileSync } from "node:fs";
import { exit, onInterruption, readArguments } from "../command-line.ts";
import { currentCommit } from "../commit.ts";
import { readEnvironment } from "../environment.ts";
import { retry, WranglerFailed, wrangler } from "../wrangler.ts";
import { readKey } from "./key.ts";
import { INTERVAL } from "./poll.ts";
import { parseBase, smoke, waitUntilReady } from "./smoke.ts";
import { changeTraffic, expectTraffic, type Run, readTraffic } from "./traffic.ts";

// A new version, and the override that tests it, take some seconds to be known everywhere. More than 90 have been seen.
const PATIENCE = 180_000; // milliseconds

export type Task = ReturnType<typeof readTask> & {
  /** One of the environment's API keys, for the test. */
  key: string;
};

/** What to deploy. Throws with a message for the operator. */
export function readTask([name = "", ...flags]: string[], env: NodeJS.Dict<string>) {
  if (flags.length > 0) throw new Error("A deployment has no flags.");
  return {
    environment: readEnvironment(name),
    /** If it differs from what Wrangler prints. A workflow sets it to an empty string if its variable is not set. */
    base: env["SMOKE_URL"] ? parseBase("SMOKE_URL", env["SMOKE_URL"]) : undefined,
    githubOutput: env["GITHUB_OUTPUT"],
  };
}

/**
 * Throws with a message for the operator unless the new version serves. If `signal` is aborted, stops at the next safe moment.
 * `pace`: as for poll(), for requests and for changes of the traffic.
 */
export async function deploy(
  { environment: { name, worker, database }, key, base: given, githubOutput }: Task,
  signal: AbortSignal,
  run: Run = (...args) => wrangler([...args, "--env", name]),
  pace = { interval: INTERVAL, patience: PATIENCE },
): Promise<void> {
  const limits = { ...pace, signal };
  const waits = `Each request is repeated for up to ${pace.patience / 60_000} minutes`;
  const begin = (step: string) => {
    signal.throwIfAborted();
    console.log(`\n== ${name}: ${step}\n`);
  };

  begin("Current version");
  const before = await readTraffic(run).catch((failure: Error) => {
    // Which of the codes depends on the endpoint.
    if (!/\[code:\s(10007|10090)\]/.test(failure.message)) throw failure;
    throw new Error(`The Worker ${worker} does not exist in this account (npx wrangler whoami). Create it and, if it does not exist either,
its database ("Set up an environment" in docs/OPERATIONS.md):
npx wrangler d1 create ${database} --location=weur
npx wrangler secret put API_KEY --env ${name}`);
  });
  // What a killed deployment has left at 0% is removed.
  const [current = ""] = before.split(" ");
  if (!current.endsWith("@100%")) {
    throw new Error(`Several versions share the traffic: ${before}
Give all of it to one of them, and deploy again: npx wrangler versions deploy <version>@100% -y --env ${name}`);
  }
  const secrets: { name: string }[] = JSON.parse(await run("secret", "list"));
  // A version that is uploaded while the service is closed would be the latest, and Cloudflare would refuse to open the service.
  if (secrets.some(({ name }) => name === "MAINTENANCE")) {
    throw new Error(`The service is closed for maintenance. Ask whoever closed it. If they agree, open it, and deploy again:
npx wrangler secret delete MAINTENANCE --env ${name}
To deliver a fix while it is closed, without migrations and test: npx wrangler deploy --env ${name}`);
  }
  console.log(current);

  const commit = currentCommit();
  const state = commit.endsWith("-dirty") ? " (with changes that are not committed)" : "";
  begin(`Commit ${commit || "unknown"}${state}: migrations`);
  // Callers are not affected: the current version works with the migrations, and an address leads to whichever version serves.
  console.log(await run("d1", "migrations", "apply", "DB", "--remote"));
  begin("Addresses");
  const base = baseIn(await run("triggers", "deploy"), given);
  console.log(base);
  begin("New version");
  // Somebody may have closed the service meanwhile, which makes a version, too.
  await expectTraffic(run, [before]);
  const version = await upload(run, commit);
  console.log(version);

  const testing = `${current} ${version}@0%`;
  const promoted = `${version}@100%`;
  try {
    begin(`Smoke test of the new version, which callers do not get yet. ${waits}`);
    await changeTraffic(run, [before], testing, pace.interval, signal);
    await smoke({ base, version, override: worker }, key, limits);
    begin(`All traffic to the new version. ${waits}`);
    await changeTraffic(run, [testing], promoted, pace.interval, signal);
  } catch (failure) {
    // A later `wrangler secret put` could put live what stays at 0%.
    const leaving = changeTraffic(run, [before, testing], current, pace.interval);
    const problem = await leaving.catch((problem: Error) => problem);
    const messages = new Set([
      (failure as Error).message,
      problem?.message ?? `Callers get the version before: ${current}`,
    ]);
    const remedy =
      problem instanceof WranglerFailed
        ? `Give the version before all traffic: npx wrangler versions deploy ${current} -y --env ${name}`
        : 'If Wrangler now refuses to change a secret: "Put a commit live" in docs/OPERATIONS.md.';
    throw new Error([...messages, remedy].join("\n"));
  }

  await waitUntilReady({ base, version }, limits).catch(async ({ message }: Error) => {
    const now = await retry(() => readTraffic(run), pace.interval).catch(({ message }: Error) => message);
    if (now !== promoted) throw new Error(`The traffic has changed since, or cannot be read: ${now}\n${message}`);
    throw new Error(`${message}
Version ${version} gets all traffic at ${base}. The version before: ${current}
To go back: "A new version is bad" in docs/OPERATIONS.md.`);
  });
  if (githubOutput) appendFileSync(githubOutput, `url=${base}\n`);
  console.log(`\n${worker}: version ${version} serves all requests at ${base}`);
}

/** The base URL: `given`, or that of the address that Wrangler printed. A workers.dev address works at once, a new domain later. */
export function baseIn(output: string, given?: string): string {
  const [, host] = /https:\/\/(\S+\.workers\.dev)$/m.exec(output) ?? /(\S+) \(custom domain/.exec(output) ?? [];
  if (!given && !host) throw new Error("Wrangler did not print an address: set SMOKE_URL to the base URL.");
  return given ?? `https://${host}/v1`;
}

async function upload(run: Run, commit: string): Promise<string> {
  const output = await run("versions", "upload", `--tag=${commit || "no-commit"}`);
  const [, version] = /^Worker Version ID: (\S+)$/m.exec(output) ?? [];
  if (!version) throw new Error("Wrangler did not print the id of the new version.");
  return version;
}

// One Ctrl-C arrives twice, within milliseconds, if npm passes it on too: that depends on its shell.
const SAME_KEY_PRESS = 500; // milliseconds

if (import.meta.main) {
  const task = await readArguments("npm run deploy:<environment>", async (args, env) => ({
    ...readTask(args, env),
    key: await readKey(),
  }));
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
        `\nEnded at once. To see what is deployed: npx wrangler deployments status --env ${name}
If there are two versions: npx wrangler versions deploy <the one at 100%>@100% -y --env ${name}`,
        code,
      );
    }
  });
  await deploy(task, interruption.signal).catch(({ message }: Error) =>
    exit(`\nThe deployment of ${name} failed. ${message}`, status),
  );
}
