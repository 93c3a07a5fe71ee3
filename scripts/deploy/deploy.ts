// Brings one environment up to date: its database, its migrations, its Worker. A new version serves callers only after it has
// passed the smoke test in its environment. If anything fails, or the operator presses Ctrl-C, the current version keeps
// serving alone, and what somebody else has deployed meanwhile stays as it is.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { VERSION_HEADER } from "../../src/http/responses.ts";
import { onInterruption, printable, readArguments } from "../command-line.ts";
import { hasDatabase } from "../environment.ts";
import { wrangler } from "../wrangler.ts";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { keysMark, readKeyHistory, withSecretsFile } from "./keys.ts";
import { INTERVAL, poll } from "./poll.ts";
import { smoke, waitUntilReady } from "./smoke.ts";
import { readTraffic, setTraffic, specs, type Traffic } from "./traffic.ts";

const TAKEN = "Somebody else has deployed meanwhile. Deploy again.";
const TRIES = 5; // to give the traffic back

/** `signal`: once aborted, the deployment stops at the next safe moment. `next`: how to continue with the same keys, if any. */
type Progress = { signal: AbortSignal; next: string };

/** Whether the new version serves. Prints what happens, and why it failed. `interval`: as in Limits. */
export async function deploy(asked: Arguments, progress: Progress, run = wrangler, interval = INTERVAL) {
  const { environment, keys, place, wait, smokeUrl } = asked;
  const { name, worker, database } = environment;
  const { signal } = progress;
  const limits = () => ({ until: Date.now() + wait, interval, signal });
  let isChanged = false;

  try {
    beginUnlessInterrupted("Current version");
    const before = await readTraffic(name, run);
    if (before && keys.adds && !keys.revokesAll && keys.given.length === 0) {
      throw new Error(`${worker} has keys already: set API_KEY to all of them, and --new-key adds one.`);
    }
    const exists = before !== undefined || (await hasDatabase(environment, run));
    if (exists && place.length > 0) {
      throw new Error(`${database} already exists, and cannot be moved: leave out ${place.join(" ")}.`);
    }
    const { version, base } = before ? await deployNext(before) : await deployFirst(exists);
    if (asked.outputs) appendFileSync(asked.outputs, `url=${base}\n`);
    console.log(`\n${worker}: version ${version} serves all requests, at ${base}.`);
    return true;
  } catch (failure) {
    // A signal also ends a Wrangler command that is just starting.
    const { message } = signal.aborted ? (signal.reason as Error) : (failure as Error);
    console.error(`\n${printable(message)}\n\nThe deployment of ${name} failed.`);
    const unknown = () => `unknown (npx wrangler deployments status --env ${name})`;
    const traffic = () => readTraffic(name, run).then((now = {}) => specs(now).join(", ") || "none");
    if (isChanged) console.error(`Traffic: ${await insist(traffic).catch(unknown)}. See the last step above.`);
    else console.error("Nothing was migrated or uploaded.");
    if (progress.next) console.error(progress.next);
    return false;
  }

  /** No earlier version could keep serving, so this one serves at once. */
  async function deployFirst(exists: boolean) {
    if (!keys.change) {
      throw new Error(`The Worker ${worker} does not exist yet. Run the first deployment yourself: it decides where the data is stored.
npm run deploy:${name} -- --new-key [--location=<hint> | --jurisdiction=<name>]`);
    }
    if (keys.adds && keys.given.length > 0) {
      throw new Error("Unset API_KEY: a first deployment with --new-key takes no other key. Or use --set-keys.");
    }
    const secret = settleKeys(place);
    beginUnlessInterrupted("Database");
    isChanged = true;
    if (!exists) await run(["d1", "create", database, "--update-config=false", ...place]);
    console.log(`${database} ${exists ? "already exists" : "is created"}.`);
    progress.next = continuation();
    await migrate();
    beginUnlessInterrupted("Worker");
    const { version, output } = await upload(["deploy"], secret, secret.length);
    const target = { version, base: baseIn(output) };
    beginUnlessInterrupted(`Smoke test at ${target.base}`);
    await smoke(target, newestOf(secret), limits(), name);
    return target;
  }

  async function deployNext(before: Traffic) {
    console.log(specs(before).join(", "));
    const [current, ...others] = Object.keys(before).filter((version) => before[version]);
    if (!current || others.length > 0) {
      throw new Error(`Somebody has split the traffic between versions by hand. Give all of it to one version first:
npx wrangler versions deploy <version>@100% --env ${name}`);
    }
    const { count, isPending } = await readKeyHistory(current, name, run);
    if (isPending && (keys.adds || !keys.change) && !keys.revokesAll) {
      throw new Error(`An unfinished deployment has changed the keys of ${name}. Finish it first, with all keys that callers need:
API_KEY=… npm run deploy:${name} -- --set-keys (see "Rotate the keys" in docs/OPERATIONS.md).`);
    }
    // An address leads to whichever version serves, so it can be set up before there is a new one.
    beginUnlessInterrupted("Addresses");
    const base = baseIn(await run(["triggers", "deploy", "--env", name]));
    console.log(base);
    const accepted = keys.revokesAll ? [] : await findAccepted(base);
    if (keys.adds && !keys.revokesAll && accepted.length < count) {
      throw new Error(`API_KEY has ${accepted.length} of the ${count} keys of ${name}. --new-key needs all of them.`);
    }
    if (keys.adds && count === 0) console.log(`Any other key of ${name} is removed: how many it has is not known.`);
    const secret = settleKeys([]);
    await migrate();
    beginUnlessInterrupted("New version");
    const { version } = await upload(["versions", "upload"], secret, keys.change ? secret.length : count);
    await testAndPromote(version, base, before, current, newestOf(keys.change ? secret : accepted));
    return { version, base };
  }

  /** The given keys that the current version accepts. Throws if there are none: all callers would be rejected. */
  async function findAccepted(base: string): Promise<string[]> {
    beginUnlessInterrupted("Keys");
    const accepted: string[] = [];
    try {
      for (const key of keys.given) {
        // The key is checked before the path, and this path needs no database.
        const request = { headers: { Authorization: `Bearer ${key}` } };
        const { status, headers } = await poll({ base }, "/nothing", request, limits());
        if (!headers.get(VERSION_HEADER)) throw new Error(`${base} answers ${status}, but not as this service.`);
        if (status !== 401) accepted.push(key);
      }
    } catch (failure) {
      // A version that is too broken to answer must be replaceable. Keys that do not change reject nobody.
      if (keys.change || signal.aborted) throw failure;
      console.log(`${printable((failure as Error).message)}\nThe keys do not change, so the deployment continues.`);
      return keys.given;
    }
    if (accepted.length === 0) {
      throw new Error(`None of the keys in API_KEY is a key of ${name}. Are they another environment's?
See "Rotate the keys" in docs/OPERATIONS.md.`);
    }
    console.log(`The current version accepts ${accepted.length} of ${keys.given.length} given keys.`);
    return accepted;
  }

  /** The new version's keys, or none if they stay. Prints a new one: all checks passed, and only addresses have changed. */
  function settleKeys(place: string[]): string[] {
    if (!keys.change) return [];
    signal.throwIfAborted();
    progress.next = continuation(place);
    if (!keys.adds) return keys.given;
    const key = randomBytes(32).toString("base64url");
    console.log(`\nNew key: ${key}\nStore it now: it is not shown again, and stored nowhere else.`);
    return [...keys.given, key];
  }

  function continuation(place: string[] = []): string {
    const flags = ["--set-keys", ...(keys.revokesAll ? ["--revoke-all-keys"] : []), ...place].join(" ");
    return `To continue with the same keys${keys.adds ? ", the new one included" : ""}:\nAPI_KEY=… npm run deploy:${name} -- ${flags}`;
  }

  /** Gives all traffic to the version if it passes the test at 0%. Otherwise gives it back, and throws. */
  async function testAndPromote(version: string, base: string, before: Traffic, current: string, key: string) {
    const target = { version, base };
    const tested = { [current]: 100, [version]: 0 };
    const promoted = { [version]: 100 };
    let expected = before;
    try {
      beginUnlessInterrupted(`Smoke test of version ${version}, which does not serve callers yet, at ${base}`);
      console.log(`If this command cannot give all traffic back to the current version, run:
npx wrangler rollback ${current} --env ${name} < /dev/null\n`);
      let isTestable = true;
      await moveTo(tested).catch((failure: Error) => {
        // Cloudflare refuses an older version with other keys. It is not known whether that includes one that already serves.
        isTestable = !(keys.change && failure.message.includes("[code: 10220]"));
        if (isTestable) throw failure;
        console.log("Cloudflare refuses to test other keys before they serve (10220). The test follows at once.");
      });
      if (isTestable) await smoke({ ...target, override: worker }, key, limits(), name);
      beginUnlessInterrupted(`All traffic to version ${version}`);
      await moveTo(promoted);
      await (isTestable ? waitUntilReady(target, limits()) : smoke(target, key, limits(), name));
    } catch (failure) {
      const isTaken = await insist(giveBack).catch((problem: Error) => console.error(printable(problem.message)));
      throw isTaken ? new Error(TAKEN, { cause: failure }) : failure;
    }

    /** Throws if the traffic is not as this deployment left it, or the operator has interrupted. */
    async function moveTo(next: Traffic): Promise<void> {
      if (!isSame(await readTraffic(name, run), expected)) throw new Error(TAKEN);
      signal.throwIfAborted();
      expected = next;
      await setTraffic(next, name, run);
    }

    /** Whether somebody else has deployed, whose traffic stays as it is. */
    async function giveBack(): Promise<boolean> {
      const now = await readTraffic(name, run);
      if (expected === before && isSame(now, before)) return false;
      if (![before, tested, promoted].some((ours) => isSame(now, ours))) return true;
      // `versions deploy` cannot return to other keys (10220). Without a terminal, `rollback` confirms that by itself.
      await run(["rollback", current, "--env", name]);
      console.log(`Traffic: ${current}@100%`);
      return false;
    }

    /** Whether Cloudflare lists a version at 0% is not documented, so this deployment's own does not count there. */
    function isSame(now: Traffic = {}, then: Traffic): boolean {
      const counting = ({ [version]: own, ...others }: Traffic) => (own ? { ...others, [version]: own } : others);
      return isDeepStrictEqual(counting(now), counting(then));
    }
  }

  /** Repeats what must not fail because of one bad response. */
  async function insist<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work();
      } catch (failure) {
        if (tries === TRIES) throw failure;
        await setTimeout(interval * 2 ** tries);
      }
    }
  }

  function beginUnlessInterrupted(step: string): void {
    signal.throwIfAborted();
    console.log(`\n== ${name}: ${step}\n`);
  }

  async function migrate(): Promise<void> {
    beginUnlessInterrupted("Migrations");
    isChanged = true;
    console.log(await run(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]));
  }

  /** Uploads a version, with keys that change, and the commit if any. Returns its id, and what Wrangler printed. */
  async function upload(command: string[], secret: string[], count: number) {
    const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim() ?? "";
    const commit = git("rev-parse", "--short", "HEAD");
    // Untracked files count, because an untracked migration is applied too.
    const tag = commit && commit + (git("status", "--porcelain", "--untracked-files") ? "-dirty" : "");
    const message = (keysMark(keys.change, count) + git("log", "-1", "--format=%s")).trim().slice(0, 100);
    const given = Object.entries({ tag, message }).filter(([, value]) => value);
    const flags = given.map(([flag, value]) => `--${flag}=${value}`);
    // SKIP_DEPLOY_CHECK tells the build step (scripts/build/plain-deploy.ts) that this is not a plain `wrangler deploy`. An
    // API_KEY in the environment would win over the one in a file, so both are the same.
    const send = (API_KEY?: string, ...file: string[]) =>
      run([...command, "--env", name, ...flags, ...file], { API_KEY, SKIP_DEPLOY_CHECK: "true" });
    const keep = (file: string) => send(secret.join(","), `--secrets-file=${file}`);
    const output = await (keys.change ? withSecretsFile(secret.join(","), keep) : send());
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

const newestOf = (keys: string[]): string => keys.at(-1) ?? "";

/** The base URL at the address that Wrangler printed. A workers.dev address works at once, a new domain some minutes later. */
export function printedBase(output: string): string | undefined {
  const [, host] = /https:\/\/(\S+\.workers\.dev)$/m.exec(output) ?? /(\S+) \(custom domain/.exec(output) ?? [];
  return host && `https://${host}/v1`;
}

if (import.meta.main) {
  const interruption = new AbortController();
  const progress = { signal: interruption.signal, next: "" };
  const asked = readArguments(USAGE, parseArguments);
  onInterruption((signal, status) => {
    if (interruption.signal.aborted) {
      // A terminal that closes sends it twice.
      if (signal === "SIGHUP") return;
      console.error(`\n${signal}: ended at once. The last step above may be unfinished.
To see which version serves: npx wrangler deployments status --env ${asked.environment.name}`);
      if (progress.next) console.error(progress.next);
      process.exit(status);
    }
    console.error(`\n${signal}: stopping after the current Wrangler command. Press Ctrl-C again to end at once.`);
    process.exitCode = status;
    interruption.abort(new Error(`Interrupted by ${signal}.`));
  });
  if (!(await deploy(asked, progress))) process.exitCode ??= 1;
}
