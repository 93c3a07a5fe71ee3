// Brings one environment up to date: its database, its migrations, its Worker. A new version serves callers only after it has
// passed the smoke test in its environment. If anything fails, or the operator presses Ctrl-C, the current version keeps
// serving alone, and what somebody else has deployed meanwhile stays as it is.

import { spawnSync } from "node:child_process";
import { isDeepStrictEqual } from "node:util";
import { onInterruption, printable, readArguments } from "../command.ts";
import { hasDatabase } from "../environment.ts";
import { wrangler } from "../wrangler.ts";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { INTERVAL, poll, waitUntilReady } from "./poll.ts";
import { smoke } from "./smoke.ts";
import { type Traffic, trafficOf } from "./traffic.ts";

// In the message of a version with new keys: rolling back past it would bring back the old ones.
const NEW_KEYS = "[new keys]";

/** `signal`: once aborted, the deployment stops at the next moment that is safe. `interval`: as in Limits. */
export function prepareDeployment(asked: Arguments, signal: AbortSignal, run = wrangler, interval = INTERVAL) {
  const { environment, secretsFile, keys, revokesAllKeys, place, wait, smokeUrl } = asked;
  const { name, worker, database } = environment;
  const traffic = trafficOf(environment, run);
  const limits = () => ({ until: Date.now() + wait, interval, signal });
  let step = "";
  let undo = "";
  let isUploaded = false;

  /** Whether the new version serves. Prints what happens, and why it failed. */
  async function deploy(): Promise<boolean> {
    try {
      const before = await traffic.read();
      const exists = before !== undefined || (await hasDatabase(environment, run));
      if (exists && place.length > 0) {
        throw new Error(
          `${database} already exists, and its location cannot be changed: leave out --location and --jurisdiction.`,
        );
      }
      const { version, base } = before ? await deployNext(before) : await deployFirst(exists);
      console.log(`\n${worker}: version ${version} serves all requests, at ${base}.`);
      return true;
    } catch (failure) {
      console.error(`\n${printable((failure as Error).message)}\n\n${name} is not up to date.`);
      // Without a secrets file, Wrangler takes the keys of the version that was uploaded last.
      if (secretsFile && isUploaded) {
        console.error(
          "Deploy with a secrets file next, even if it has the old keys: otherwise the keys of this version go live.",
        );
      }
      const where = step ? `see the step "${step}" above` : "nothing was changed";
      console.error(`${worker}: ${await traffic.describe()}; ${where}.`);
      return false;
    }
  }

  /** No earlier version could keep serving, so this one serves at once. */
  async function deployFirst(exists: boolean) {
    if (!secretsFile) {
      throw new Error(`The Worker ${worker} does not exist yet. Run the first deployment yourself: it decides where the data is stored.
npm run deploy:${name} -- --secrets-file <file with API_KEY=<key>> [--location <hint> | --jurisdiction <name>]`);
    }
    begin("Database");
    if (!exists) await run(["d1", "create", database, "--update-config=false", ...place]);
    console.log(`${database} ${exists ? "already exists" : "is created"}.`);
    await migrate();
    begin("Worker");
    const output = await upload("deploy");
    const target = { version: versionIn(output), base: baseIn(output) };
    begin(`Smoke test at ${target.base}`);
    await smoke(target, keys.newest, limits(), name);
    return target;
  }

  async function deployNext(before: Traffic) {
    const [current, ...others] = Object.keys(before).filter((version) => before[version]);
    if (!current || others.length > 0) {
      throw new Error(`Somebody has split the traffic between versions by hand. Give all of it to one version first:
npx wrangler versions deploy <version>@100% --env ${name}`);
    }
    // An address leads to whichever version serves, so it can be set up before there is a new one.
    begin("Addresses");
    const base = baseIn(await run(["triggers", "deploy", "--env", name]));
    console.log(base);
    if (!revokesAllKeys) await expectKnownKey(base);
    await migrate();
    begin("New version");
    const target = { version: versionIn(await upload("versions", "upload")), base };
    await testAndPromote(target, before, current);
    return target;
  }

  /** Throws if the service rejects every key, because the new version would then reject every caller. */
  async function expectKnownKey(base: string): Promise<void> {
    begin("Keys");
    for (const key of keys.all) {
      // The key is checked before the path, and this path needs no database.
      const request = { headers: { Authorization: `Bearer ${key}` } };
      const { status } = await poll({ base }, "/nothing", request, limits());
      if (status !== 401) return console.log("ok: the current version has one of the keys");
    }
    throw new Error(`The current version does not have any key in ${secretsFile ?? "API_KEY"}: callers use different keys. Include one of theirs.
If every caller must be rejected, because a key was stolen, add --revoke-all-keys.`);
  }

  /** Gives all traffic to the version if it passes the test at 0%. Otherwise gives it back, and throws. */
  async function testAndPromote(target: { base: string; version: string }, before: Traffic, current: string) {
    const { version, base } = target;
    const tested = { [current]: 100, [version]: 0 };
    const promoted = { [version]: 100 };
    begin(`Smoke test of version ${version}, which does not serve callers yet, at ${base}`);
    await expectTraffic(before);
    undo = ` To give all traffic back to version ${current}, run:
npx wrangler versions deploy ${current}@100% --env ${name}`;
    try {
      await traffic.set(tested);
      await smoke({ ...target, override: worker }, keys.newest, limits(), name);
      begin(`All traffic to version ${version}`);
      await expectTraffic(tested);
      signal.throwIfAborted();
      await traffic.set(promoted);
      await waitUntilReady(target, limits());
    } catch (failure) {
      try {
        if (await hasTraffic(tested, promoted)) await traffic.set(before);
      } catch (problem) {
        console.error(printable((problem as Error).message + undo));
      }
      throw failure;
    }
  }

  /** Whether the traffic is one of these. */
  async function hasTraffic(...known: Traffic[]): Promise<boolean> {
    const current = await traffic.read();
    return known.some((one) => isDeepStrictEqual(one, current));
  }

  async function expectTraffic(known: Traffic): Promise<void> {
    if (!(await hasTraffic(known))) throw new Error("Somebody else has deployed meanwhile. Deploy again.");
  }

  /** Announces the next step, unless the operator has interrupted. */
  function begin(next: string): void {
    signal.throwIfAborted();
    step = next;
    console.log(`\n== ${name}: ${step}\n`);
  }

  async function migrate(): Promise<void> {
    begin("Migrations");
    console.log(await run(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]));
  }

  /** Uploads a version, with the keys and the commit if there are any. Returns what Wrangler printed. */
  async function upload(...command: string[]): Promise<string> {
    const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim();
    const commit = git("rev-parse", "--short", "HEAD");
    // Untracked files count, because an untracked migration is applied too.
    const tag = commit && commit + (git("status", "--porcelain", "--untracked-files") ? "-dirty" : "");
    const message = [secretsFile && NEW_KEYS, git("log", "-1", "--format=%s")].filter(Boolean).join(" ").slice(0, 100);
    const given = Object.entries({ "secrets-file": secretsFile, tag, message }).filter(([, value]) => value);
    const flags = given.map(([flag, value]) => `--${flag}=${value}`);
    // An API_KEY in the environment would win over the one in the file, so both are the same. SKIP_DEPLOY_CHECK tells the
    // build step (scripts/build/plain-deploy.ts) that this is not a plain `wrangler deploy`.
    const API_KEY = secretsFile ? keys.all.join(",") : undefined;
    const output = await run([...command, "--env", name, ...flags], { API_KEY, SKIP_DEPLOY_CHECK: "true" });
    isUploaded = true;
    return output;
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

  /** What a deployment that is cut off now leaves behind, in words. */
  function describeUnfinished(): string {
    if (!step) return "Nothing was changed.";
    return `The step "${step}" may be unfinished: see npx wrangler deployments status --env ${name}.${undo}`;
  }

  return { deploy, describeUnfinished };
}

/** The base URL at the address that Wrangler printed. A workers.dev address works at once, a new domain some minutes later. */
export function printedBase(output: string): string | undefined {
  const [, host] = /https:\/\/(\S+\.workers\.dev)$/m.exec(output) ?? /(\S+) \(custom domain/.exec(output) ?? [];
  return host && `https://${host}/v1`;
}

if (import.meta.main) {
  const interruption = new AbortController();
  const { deploy, describeUnfinished } = prepareDeployment(readArguments(USAGE, parseArguments), interruption.signal);
  onInterruption((signal, status) => {
    if (interruption.signal.aborted) {
      console.error(`\n${signal}: ended at once. ${describeUnfinished()}`);
      process.exit(status);
    }
    console.error(
      `\n${signal}: stopping as soon as the current Wrangler command has finished. Press Ctrl-C again to end at once.`,
    );
    process.exitCode = status;
    interruption.abort(new Error(`Interrupted by ${signal}.`));
  });
  if (!(await deploy())) process.exitCode ??= 1;
}
