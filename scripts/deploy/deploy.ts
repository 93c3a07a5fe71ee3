// Brings one environment up to date: its database, its migrations, its Worker. A new version serves callers only after it
// has passed the smoke test in its environment. If anything fails, or the operator presses Ctrl-C, the current version keeps
// serving alone.

import { spawnSync } from "node:child_process";
import { constants } from "node:os";
import { hasDatabase } from "../environment.ts";
import { type Finished, WranglerFailed, wrangler } from "../wrangler.ts";
import { parseArguments, USAGE } from "./arguments.ts";
import { NoAnswer, type VersionTarget, waitUntilReady } from "./poll.ts";
import { smoke } from "./smoke.ts";
import { currentTraffic, describeTraffic, type Share, setTraffic } from "./traffic.ts";

const { environment, secrets, key, place, wait, smokeUrl } = readArguments();
const { name, worker, database, domain } = environment;

// In the message of a version with new keys: rolling back past it would bring back the old ones.
const NEW_KEYS = "[new keys]";

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (interruption.signal.aborted) return;
    console.error(`\n${signal}: stopping as soon as the current Wrangler command has finished.`);
    process.exitCode = 128 + constants.signals[signal];
    interruption.abort(new Error(`Interrupted by ${signal}.`));
  });
}

let step = "";
try {
  const shares = await currentTraffic(environment);
  const { version, base } = shares ? await deployNext(shares) : await deployFirst();
  console.log(`\n${worker}: version ${version} serves all requests, at ${base}.`);
} catch (failure) {
  process.exitCode ??= 1;
  if (failure instanceof WranglerFailed) console.error(failure.output);
  console.error(`\n${name} is not up to date. ${(failure as Error).message}`);
  const where = step ? `see the step "${step}" above` : "nothing was changed";
  console.error(`${worker}: ${await describeTraffic(environment)}; ${where}.`);
}

/** Ends the process with 2 if the arguments are wrong. */
function readArguments() {
  try {
    return parseArguments(process.argv.slice(2), process.env);
  } catch (failure) {
    console.error(`${(failure as Error).message}\n${USAGE}`);
    process.exit(2);
  }
}

/** No earlier version could keep serving, so this one serves at once. */
async function deployFirst(): Promise<VersionTarget> {
  if (!secrets) {
    throw new Error(`The Worker ${worker} does not exist yet. Run the first deployment yourself: it decides where the data is stored.
npm run deploy:${name} -- --secrets-file <file with API_KEY=<key>> [--location <hint> | --jurisdiction <name>]`);
  }
  begin("Database");
  if (await hasDatabase(environment)) {
    rejectPlace(`The database ${database}`);
    console.log(`${database} already exists.`);
  } else {
    const { output } = await wrangler(["d1", "create", database, "--update-config=false", ...place], { quiet: true });
    // Not Wrangler's advice to copy the database's id into wrangler.toml.
    console.log(output.split("\n").find((line) => line.includes(database)));
  }
  await migrate();

  begin("Worker");
  const target = targetOf(await upload("deploy"));
  begin(`Smoke test at ${target.base}`);
  await test(target);
  return target;
}

async function deployNext(shares: Share[]): Promise<VersionTarget> {
  const [current, ...others] = shares.filter(({ percentage }) => percentage > 0).map(({ version_id }) => version_id);
  if (!current || others.length > 0) {
    throw new Error(`Somebody has split the traffic between versions by hand. Give all of it to one version first:
npx wrangler versions deploy <version>@100% --env ${name}`);
  }
  rejectPlace(`The Worker ${worker}`);
  await migrate();

  begin("New version");
  const { version } = await upload("versions", "upload");
  // An address leads to whichever version serves, so it can be set up before the new version is tested there.
  begin("Addresses");
  const { output } = await wrangler(["triggers", "deploy", "--env", name], { quiet: true });
  const target = targetOf({ version, output });
  console.log(target.base);
  try {
    begin(`Smoke test of version ${target.version}, which does not serve callers yet, at ${target.base}`);
    await setTraffic(environment, { [current]: 100, [target.version]: 0 });
    await test({ ...target, override: worker }).catch((failure) => {
      if (!(failure instanceof NoAnswer) || failure.instead !== current) throw failure;
      // Without API_KEY in the environment, because it would win over the one in the file.
      const file = secrets ? ` --secrets-file ${secrets.file} --message "${NEW_KEYS}", with API_KEY unset` : "";
      throw new Error(`${failure.message} The version override was ignored for ${wait / 1000} s.
If it always is, this deploys without a test: npx wrangler deploy --env ${name}${file}`);
    });
    begin(`All traffic to version ${target.version}`);
    const now = await currentTraffic(environment);
    if (!now?.some(({ version_id }) => version_id === target.version)) throw new Error("Somebody else has deployed.");
    interruption.signal.throwIfAborted();
    await setTraffic(environment, { [target.version]: 100 });
    await waitUntilReady(target, limits());
  } catch (failure) {
    await restore(current, target.version);
    throw failure;
  }
  return target;
}

/** Gives all traffic back to the version that served before, unless somebody else has deployed since. */
async function restore(previous: string, version: string): Promise<void> {
  try {
    const shares = await currentTraffic(environment);
    if (shares?.some(({ version_id }) => version_id === version)) await setTraffic(environment, { [previous]: 100 });
  } catch (failure) {
    console.error(`${(failure as Error).message} This gives all traffic back to version ${previous}:
npx wrangler versions deploy ${previous}@100% --env ${name}`);
  }
}

/** Announces the next step, unless the operator has interrupted. */
function begin(next: string): void {
  interruption.signal.throwIfAborted();
  step = next;
  console.log(`\n== ${name}: ${step}\n`);
}

async function migrate(): Promise<void> {
  begin("Migrations");
  await wrangler(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]);
}

/** Uploads a version, with the secrets and the commit if there are any. */
async function upload(...command: string[]): Promise<Finished> {
  const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim();
  const commit = git("describe", "--always", "--dirty", "--exclude=*");
  const message = [secrets ? NEW_KEYS : "", git("log", "-1", "--format=%s")].filter(Boolean).join(" ");
  const flags = { "secrets-file": secrets?.file, tag: commit, message: message.slice(0, 100) };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value ? [`--${flag}=${value}`] : []));
  // An API_KEY in the environment would win over the one in the file, so both are the same. SKIP_DEPLOY_CHECK tells the
  // build step (scripts/build/plain-deploy.ts) that this is not a plain `wrangler deploy`.
  const env = { API_KEY: secrets?.keys, SKIP_DEPLOY_CHECK: "true" };
  // Quiet, because Wrangler goes on to recommend commands that would skip the smoke test.
  const finished = await wrangler([...command, "--env", name, ...given], { quiet: true, env });
  console.log(`Uploaded version ${finished.version}.`);
  return finished;
}

/** The uploaded version, at the address that Wrangler printed. */
function targetOf({ version, output }: Pick<Finished, "version" | "output">): VersionTarget {
  const [, workersDev] = /^ *(https:\/\/\S+\.workers\.dev)$/m.exec(output) ?? [];
  const origin = workersDev ?? (domain && `https://${domain}`);
  const base = smokeUrl ?? (origin && `${origin}/v1`);
  if (!base) throw new Error("Wrangler did not print an address: set SMOKE_URL to the base URL.");
  if (!version) throw new Error("Wrangler did not report a version.");
  return { base, version };
}

async function test(target: VersionTarget): Promise<void> {
  await waitUntilReady(target, limits());
  await smoke(target, key, limits());
}

function limits() {
  return { until: Date.now() + wait, signal: interruption.signal };
}

function rejectPlace(what: string): void {
  if (place.length === 0) return;
  throw new Error(
    `${what} already exists, and the location of its data cannot be changed: leave out --location and --jurisdiction.`,
  );
}
