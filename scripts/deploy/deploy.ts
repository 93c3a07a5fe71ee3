// Brings one environment up to date: its database, its migrations, its Worker. A new version serves callers only after it has
// passed the smoke test in its environment. If anything fails, or the operator presses Ctrl-C, the current version keeps
// serving alone, and what somebody else has deployed meanwhile stays as it is.

import { spawnSync } from "node:child_process";
import { isDeepStrictEqual } from "node:util";
import { VERSION_HEADER } from "../../src/http/responses.ts";
import { onInterruption, printable, readArguments } from "../command-line.ts";
import { hasDatabase } from "../environment.ts";
import { wrangler } from "../wrangler.ts";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { INTERVAL, poll } from "./poll.ts";
import { smoke, waitUntilReady } from "./smoke.ts";
import { readTraffic, setTraffic, specs, type Traffic } from "./traffic.ts";

const SECRETS_NEXT = "Deploy with a secrets file next: otherwise the keys of this version go live.";
const TAKEN = "Somebody else has deployed meanwhile. Deploy again.";

/**
 * Whether the new version serves. Prints what happens, and why it failed. `signal`: once aborted, the deployment stops at the
 * next moment that is safe. `interval`: as in Limits.
 */
export async function deploy(asked: Arguments, signal: AbortSignal, run = wrangler, interval = INTERVAL) {
  const { environment, secretsFile, keys, revokesAllKeys, place, wait, smokeUrl } = asked;
  const { name, worker, database } = environment;
  const limits = () => ({ until: Date.now() + wait, interval, signal });

  try {
    begin("Current version");
    const before = await readTraffic(name, run);
    const exists = before !== undefined || (await hasDatabase(environment, run));
    if (exists && place.length > 0) {
      throw new Error(`${database} already exists, and cannot be moved: leave out ${place.join(" ")}.`);
    }
    const { version, base } = before ? await deployNext(before) : await deployFirst(exists);
    console.log(`\n${worker}: version ${version} serves all requests, at ${base}.`);
    return true;
  } catch (failure) {
    // A signal also ends a Wrangler command that is just starting.
    const { message } = signal.aborted ? (signal.reason as Error) : (failure as Error);
    console.error(`\n${printable(message)}\n\n${name} is not up to date.`);
    const unknown = () => `unknown (npx wrangler deployments status --env ${name})`;
    const traffic = await readTraffic(name, run).then((traffic = {}) => specs(traffic).join(", ") || "none", unknown);
    console.error(`Traffic: ${traffic}. See the last step above.`);
    return false;
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
    const { version, output } = await upload("deploy");
    const target = { version, base: baseIn(output) };
    begin(`Smoke test at ${target.base}`);
    await smoke(target, keys.newest, limits(), name);
    return target;
  }

  async function deployNext(before: Traffic) {
    console.log(specs(before).join(", "));
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
    const { version } = await upload("versions", "upload");
    await testAndPromote({ version, base }, before, current);
    return { version, base };
  }

  /** Throws if the service rejects every key, because the new version would then reject every caller. */
  async function expectKnownKey(base: string): Promise<void> {
    begin("Keys");
    for (const key of keys.all) {
      // The key is checked before the path, and this path needs no database.
      const request = { headers: { Authorization: `Bearer ${key}` } };
      const { status, headers } = await poll({ base }, "/nothing", request, limits());
      if (!headers.get(VERSION_HEADER)) {
        throw new Error(`${base} is answered by something other than this service (${status}). Deploy again.`);
      }
      if (status !== 401) return console.log("ok: the current version does not reject all keys");
    }
    const orRevoke = "\nIf every caller must be rejected, because a key was stolen, add --revoke-all-keys.";
    throw new Error(
      `The current version does not have any key in ${secretsFile ?? "API_KEY"}. Include one that callers use.${secretsFile ? orRevoke : ""}`,
    );
  }

  /** Gives all traffic to the version if it passes the test at 0%. Otherwise gives it back, and throws. */
  async function testAndPromote(target: { base: string; version: string }, before: Traffic, current: string) {
    const { version, base } = target;
    const tested = { [current]: 100, [version]: 0 };
    const promoted = { [version]: 100 };
    try {
      begin(`Smoke test of version ${version}, which does not serve callers yet, at ${base}`);
      console.log(`If this command cannot give all traffic back to the current version, run:
npx wrangler versions deploy ${current}@100% --env ${name}\n`);
      await changeTraffic(before, tested);
      await smoke({ ...target, override: worker }, keys.newest, limits(), name);
      begin(`All traffic to version ${version}`);
      await changeTraffic(tested, promoted);
      await waitUntilReady(target, limits());
    } catch (failure) {
      // Without a secrets file, Wrangler takes the keys of the version that was uploaded last.
      if (secretsFile) console.error(SECRETS_NEXT);
      let reason = failure;
      try {
        const now = await readTraffic(name, run);
        const isOurs = isDeepStrictEqual(now, tested) || isDeepStrictEqual(now, promoted);
        if (isOurs) await setTraffic(before, name, run);
        else if (!isDeepStrictEqual(now, before)) reason = new Error(TAKEN, { cause: failure });
      } catch (problem) {
        console.error(printable((problem as Error).message));
      }
      throw reason;
    }
  }

  /** Throws if the traffic is not as expected, or the operator has interrupted. */
  async function changeTraffic(expected: Traffic, next: Traffic): Promise<void> {
    const isExpected = isDeepStrictEqual(await readTraffic(name, run), expected);
    if (!isExpected) throw new Error(TAKEN);
    signal.throwIfAborted();
    await setTraffic(next, name, run);
  }

  /** Announces the next step, unless the operator has interrupted. */
  function begin(step: string): void {
    signal.throwIfAborted();
    console.log(`\n== ${name}: ${step}\n`);
  }

  async function migrate(): Promise<void> {
    begin("Migrations");
    console.log(await run(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]));
  }

  /** Uploads a version, with the keys and the commit if there are any. Returns its id, and what Wrangler printed. */
  async function upload(...command: string[]) {
    const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim() ?? "";
    const commit = git("rev-parse", "--short", "HEAD");
    // Untracked files count, because an untracked migration is applied too.
    const tag = commit && commit + (git("status", "--porcelain", "--untracked-files") ? "-dirty" : "");
    // The mark warns of a rollback to earlier versions, which would bring back the old keys.
    const mark = secretsFile ? "[new keys] " : "";
    const message = (mark + git("log", "-1", "--format=%s")).trim().slice(0, 100);
    const given = Object.entries({ "secrets-file": secretsFile, tag, message }).filter(([, value]) => value);
    const flags = given.map(([flag, value]) => `--${flag}=${value}`);
    // An API_KEY in the environment would win over the one in the file, so both are the same. SKIP_DEPLOY_CHECK tells the
    // build step (scripts/build/plain-deploy.ts) that this is not a plain `wrangler deploy`.
    const API_KEY = secretsFile ? keys.all.join(",") : undefined;
    const output = await run([...command, "--env", name, ...flags], { API_KEY, SKIP_DEPLOY_CHECK: "true" });
    const [, version] = /^(?:Current|Worker) Version ID: (\S+)$/m.exec(output) ?? [];
    if (!version) throw new Error("Wrangler did not print a version.");
    console.log(`Uploaded version ${version}.`);
    return { version, output };
  }

  function baseIn(output: string): string {
    const base = smokeUrl ?? printedBase(output);
    if (!base) throw new Error("Wrangler did not print an address: set SMOKE_URL to the base URL.");
    return base;
  }
}

/** The base URL at the address that Wrangler printed. A workers.dev address works at once, a new domain some minutes later. */
export function printedBase(output: string): string | undefined {
  const [, host] = /https:\/\/(\S+\.workers\.dev)$/m.exec(output) ?? /(\S+) \(custom domain/.exec(output) ?? [];
  return host && `https://${host}/v1`;
}

if (import.meta.main) {
  const interruption = new AbortController();
  const asked = readArguments(USAGE, parseArguments);
  onInterruption((signal, status) => {
    if (interruption.signal.aborted) {
      console.error(`\n${signal}: ended at once. The last step above may be unfinished.
To see which version serves: npx wrangler deployments status --env ${asked.environment.name}`);
      if (asked.secretsFile) console.error(SECRETS_NEXT);
      process.exit(status);
    }
    console.error(`\n${signal}: stopping after the current Wrangler command. Press Ctrl-C again to end at once.`);
    process.exitCode = status;
    interruption.abort(new Error(`Interrupted by ${signal}.`));
  });
  if (!(await deploy(asked, interruption.signal))) process.exitCode ??= 1;
}
