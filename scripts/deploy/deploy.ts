// Deploys an environment: `npm run deploy:<environment>`, with one of its keys in API_KEY. It applies the migrations, and puts a
// test between the upload of a version and its traffic. The order of the steps protects callers: until the last one they get the
// current version, and then one that has passed the test, so there is nothing to undo.

import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { exit, onInterruption, readArguments } from "../command-line.ts";
import { readEnvironment } from "../environment.ts";
import { insist, WranglerFailed, wrangler } from "../wrangler.ts";
import { INTERVAL } from "./poll.ts";
import { parseBase, parseKey, smoke, waitUntilReady } from "./smoke.ts";
import { changeTraffic, type Run, readTraffic } from "./traffic.ts";

const USAGE = "npm run deploy:<environment>, with one of its keys in the environment variable API_KEY";

// A new version, and the override that tests it, take some seconds to be known everywhere. More than 90 have been seen.
const PATIENCE = 180_000; // milliseconds

export type Task = ReturnType<typeof readTask>;

/** What to deploy. Throws with a message for the operator. */
export function readTask([name = "", ...flags]: string[], env: NodeJS.Dict<string>) {
  if (flags.length > 0) throw new Error("A deployment has no flags.");
  return {
    environment: readEnvironment(name),
    /** One of the environment's keys, for the test. */
    key: parseKey(env["API_KEY"]),
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
  const waits = `Waits for it up to ${pace.patience / 60_000} minutes`;
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
npx wrangler d1 create ${database} --location=… --update-config=false
npx wrangler secret put API_KEY --env ${name}`);
  });
  // What a killed deployment has left at 0% is removed.
  const [current = ""] = before.split(" ");
  if (!current.endsWith("@100%")) {
    throw new Error(`Several versions share the traffic: ${before}
Give all of it to one of them, and deploy again: npx wrangler versions deploy <version>@100% -y --env ${name}`);
  }
  console.log(current);

  // Callers are not affected: the current version works with the migrations, and an address leads to whichever version serves.
  begin("Migrations");
  console.log(await run("d1", "migrations", "apply", "DB", "--remote"));
  begin("Addresses");
  const base = baseIn(await run("triggers", "deploy"), given);
  console.log(base);
  begin("New version");
  const version = await upload(run);
  console.log(version);

  const testing = `${current} ${version}@0%`;
  const promoted = `${version}@100%`;
  const goBack = `npx wrangler versions deploy ${current} -y --env ${name}`;
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
    const messages = new Set([(failure as Error).message, problem?.message ?? `Traffic: ${current}`]);
    const remedy = problem instanceof WranglerFailed ? `\n\nGive the current version all traffic:\n${goBack}` : "";
    throw new Error(`${[...messages].join("\n")}

npx wrangler secret put is refused until a deployment succeeds. Do not deploy the latest version, as Wrangler then advises: it has
not passed the test. To change the keys, run this command, and deploy again:
npx wrangler versions secret put API_KEY --env ${name}${remedy}`);
  }

  await waitUntilReady({ base, version }, limits).catch(async ({ message }: Error) => {
    const now = await insist(() => readTraffic(run), pace.interval).catch(({ message }: Error) => message);
    if (now !== promoted) throw new Error(`The traffic has changed since, or cannot be read: ${now}\n${message}`);
    const isFirst = await isDraft(run, current).catch(() => false);
    const advice = isFirst ? "" : `\nTo go back to the version before:\n${goBack}`;
    throw new Error(`${message}\nVersion ${version} gets all traffic at ${base}${advice}`);
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

async function upload(run: Run): Promise<string> {
  const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim() ?? "";
  // Untracked files count, because an untracked migration is applied too.
  const dirty = git("status", "--porcelain", "--untracked-files") ? "-dirty" : "";
  const tag = `--tag=${git("rev-parse", "--short", "HEAD") || "no-commit"}${dirty}`;
  const message = `--message=${(git("log", "-1", "--format=%s") || "no commit").slice(0, 100)}`;
  const output = await run("versions", "upload", tag, message);
  const [, version] = /^Worker Version ID: (\S+)$/m.exec(output) ?? [];
  if (!version) throw new Error("Wrangler did not print the id of the new version.");
  return version;
}

/** Whether a version with all traffic is what `wrangler secret put` uploads if there is no Worker: it has no database. */
async function isDraft(run: Run, traffic: string): Promise<boolean> {
  const view = await run("versions", "view", traffic.replace("@100%", ""), "--json");
  const { resources }: { resources: { bindings: { type: string }[] } } = JSON.parse(view);
  return !resources.bindings.some(({ type }) => type === "d1");
}

// One Ctrl-C arrives twice, within milliseconds, if npm passes it on too: that depends on its shell.
const SAME_KEY_PRESS = 500; // milliseconds

if (import.meta.main) {
  const task = readArguments(USAGE, readTask);
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
