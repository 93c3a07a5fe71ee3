// Brings one environment up to date: its database, its migrations, its Worker. A new version serves callers only after it
// has passed the smoke test in its environment. If anything fails, or the operator presses Ctrl-C, the current version keeps
// serving alone.

import { spawnSync } from "node:child_process";
import { onInterruption, readArguments } from "../command.ts";
import { hasDatabase } from "../environment.ts";
import { wrangler } from "../wrangler.ts";
import { parseArguments, printedBase, USAGE } from "./arguments.ts";
import { NoAnswer, waitUntilReady } from "./poll.ts";
import { smoke } from "./smoke.ts";
import { currentTraffic, describeTraffic, setTraffic, type Traffic } from "./traffic.ts";

const { environment, secrets, key, place, wait, smokeUrl } = readArguments(USAGE, parseArguments);
const { name, worker, database } = environment;

// In the message of a version with new keys: rolling back past it would bring back the old ones.
const NEW_KEYS = "[new keys]";

const interruption = new AbortController();
onInterruption((signal, status) => {
  console.error(`\n${signal}: stopping as soon as the current Wrangler command has finished.`);
  process.exitCode = status;
  interruption.abort(new Error(`Interrupted by ${signal}.`));
});

let step = "";
let uploaded = false;
try {
  const traffic = await currentTraffic(environment);
  const exists = traffic !== undefined || (await hasDatabase(environment));
  if (exists && place.length > 0) {
    throw new Error(
      `${database} already exists, and its location cannot be changed: leave out --location and --jurisdiction.`,
    );
  }
  const { version, base } = traffic ? await deployNext(traffic) : await deployFirst(exists);
  console.log(`\n${worker}: version ${version} serves all requests, at ${base}.`);
} catch (failure) {
  process.exitCode ??= 1;
  console.error(`\n${(failure as Error).message}\n\n${name} is not up to date.`);
  // Without a secrets file, Wrangler takes the keys of the version that was uploaded last.
  if (secrets && uploaded) {
    console.error(
      "Deploy with a secrets file next, even if it has the old keys: otherwise the keys of this version go live.",
    );
  }
  const where = step ? `see the step "${step}" above` : "nothing was changed";
  console.error(`${worker}: ${await describeTraffic(environment)}; ${where}.`);
}

/** No earlier version could keep serving, so this one serves at once. */
async function deployFirst(hasDatabase: boolean) {
  if (!secrets) {
    throw new Error(`The Worker ${worker} does not exist yet. Run the first deployment yourself: it decides where the data is stored.
npm run deploy:${name} -- --secrets-file <file with API_KEY=<key>> [--location <hint> | --jurisdiction <name>]`);
  }
  begin("Database");
  if (!hasDatabase) await wrangler(["d1", "create", database, "--update-config=false", ...place]);
  console.log(`${database} ${hasDatabase ? "already exists" : "is created"}.`);
  await migrate();

  begin("Worker");
  const output = await upload("deploy");
  const target = { version: versionIn(output), base: baseIn(output) };
  begin(`Smoke test at ${target.base}`);
  await smoke(target, key, limits());
  return target;
}

async function deployNext(traffic: Traffic) {
  const [current, ...others] = Object.keys(traffic).filter((version) => traffic[version]);
  if (!current || others.length > 0) {
    throw new Error(`Somebody has split the traffic between versions by hand. Give all of it to one version first:
npx wrangler versions deploy <version>@100% --env ${name}`);
  }
  await migrate();

  begin("New version");
  const version = versionIn(await upload("versions", "upload"));
  // An address leads to whichever version serves, so it can be set up before the new version is tested there.
  begin("Addresses");
  const target = { version, base: baseIn(await wrangler(["triggers", "deploy", "--env", name])) };
  console.log(target.base);
  try {
    begin(`Smoke test of version ${version}, which does not serve callers yet, at ${target.base}`);
    await setTraffic(environment, { [current]: 100, [version]: 0 });
    await smoke({ ...target, override: worker }, key, limits()).catch((failure) => {
      if (!(failure instanceof NoAnswer) || failure.cause !== current) throw failure;
      // Without API_KEY in the environment, because it would win over the one in the file.
      const file = secrets ? ` --secrets-file ${secrets.file} --message "${NEW_KEYS}", with API_KEY unset` : "";
      throw new Error(`${failure.message} The version override was ignored for ${wait / 1000} s.
If this keeps happening, deploy without a test: npx wrangler deploy --env ${name}${file}`);
    });
    begin(`All traffic to version ${version}`);
    if (!(await isDeployed(version))) throw new Error("Somebody else has deployed meanwhile. Deploy again.");
    interruption.signal.throwIfAborted();
    await setTraffic(environment, { [version]: 100 });
    await waitUntilReady(target, limits());
  } catch (failure) {
    try {
      if (await isDeployed(version)) await setTraffic(environment, { [current]: 100 });
    } catch (problem) {
      console.error(`${(problem as Error).message} To give all traffic back to version ${current}, run:
npx wrangler versions deploy ${current}@100% --env ${name}`);
    }
    throw failure;
  }
  return target;
}

/** Whether the version is part of the current deployment, if only at 0%: otherwise somebody else has deployed since. */
async function isDeployed(version: string): Promise<boolean> {
  return version in ((await currentTraffic(environment)) ?? {});
}

/** Announces the next step, unless the operator has interrupted. */
function begin(next: string): void {
  interruption.signal.throwIfAborted();
  step = next;
  console.log(`\n== ${name}: ${step}\n`);
}

async function migrate(): Promise<void> {
  begin("Migrations");
  console.log(await wrangler(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]));
}

/** Uploads a version, with the secrets and the commit if there are any. Returns what Wrangler printed. */
function upload(...command: string[]): Promise<string> {
  const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim();
  const tag = git("describe", "--always", "--dirty", "--exclude=*");
  const message = [secrets && NEW_KEYS, git("log", "-1", "--format=%s")].filter(Boolean).join(" ").slice(0, 100);
  const given = Object.entries({ "secrets-file": secrets?.file, tag, message }).filter(([, value]) => value);
  const flags = given.map(([flag, value]) => `--${flag}=${value}`);
  // An API_KEY in the environment would win over the one in the file, so both are the same. SKIP_DEPLOY_CHECK tells the
  // build step (scripts/build/plain-deploy.ts) that this is not a plain `wrangler deploy`.
  const env = { API_KEY: secrets?.keys, SKIP_DEPLOY_CHECK: "true" };
  uploaded = true;
  return wrangler([...command, "--env", name, ...flags], { env });
}

function versionIn(output: string): string {
  const [, version] = /^(?:Current|Worker) Version ID: (\S+)$/m.exec(output) ?? [];
  if (!version) throw new Error("Wrangler did not print a version.");
  console.log(`Uploaded version ${version}.`);
  return version;
}

function baseIn(output: string): string {
  const base = smokeUrl ?? printedBase(output);
  if (!base) throw new Error("Wrangler did not print an address: set SMOKE_URL to the base URL.");
  return base;
}

function limits() {
  return { until: Date.now() + wait, signal: interruption.signal };
}
