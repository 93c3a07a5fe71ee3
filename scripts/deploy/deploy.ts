// Brings one environment up to date: its database, its migrations, its Worker. A new version serves callers only after it has
// passed the smoke test in its environment. If anything fails, or the operator presses Ctrl-C, the current version keeps
// serving alone, and what somebody else has deployed meanwhile is left alone.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { exit, onInterruption, printable, readArguments } from "../command-line.ts";
import { hasDatabase } from "../environment.ts";
import { insist, withFile, wrangler } from "../wrangler.ts";
import { type Arguments, parseArguments, USAGE } from "./arguments.ts";
import { INTERVAL, WrongVersion } from "./poll.ts";
import { acceptedKeys, smoke, waitUntilReady } from "./smoke.ts";
import { keysMark, readKeyHistory, readTraffic, type Traffic } from "./versions.ts";

const TAKEN = "Somebody else has deployed meanwhile. Deploy again.";

/** `signal`: once aborted, the deployment stops at the next safe moment. `next`: what to do if it ends now, if anything. */
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
    const exists = before !== undefined || (await hasDatabase(environment, run));
    checkFlags(before !== undefined, exists);
    const current = before && (await checkCurrent(before));
    const secret = chooseKeys();
    isChanged = true;
    if (!exists) {
      beginUnlessInterrupted("Database");
      await run(["d1", "create", database, "--update-config=false", ...place]);
      progress.next = continuation([]);
    }
    beginUnlessInterrupted("Migrations");
    console.log(await run(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]));
    beginUnlessInterrupted("New version");
    if (!before && (await readTraffic(name, run))) throw new Error(TAKEN);
    const output = await upload(current ? ["versions", "upload"] : ["deploy"], secret, current?.keys);
    const [, version] = /^(?:Current|Worker) Version ID: (\S+)$/m.exec(output) ?? [];
    if (!version) throw new Error("Wrangler did not print a version.");
    const base = current?.base ?? baseIn(output, smokeUrl);
    const key = secret.at(-1) ?? current?.accepted.at(-1) ?? "";
    if (current) {
      await testAndPromote(version, base, key, current.version, before);
    } else {
      // No earlier version could keep serving, so this one serves already.
      beginUnlessInterrupted(`Smoke test at ${base}`);
      await smoke({ version, base }, key, limits(), name);
    }
    if (asked.githubOutput) appendFileSync(asked.githubOutput, `url=${base}\n`);
    console.log(`\n${worker}: version ${version} serves all requests, at ${base}.`);
    return true;
  } catch (failure) {
    // A signal also ends a Wrangler command that is just starting.
    const { message } = signal.aborted ? (signal.reason as Error) : (failure as Error);
    console.error(`\n${printable(message)}\n\nThe deployment of ${name} failed.`);
    const unknown = () => `unknown (npx wrangler deployments status --env ${name})`;
    const read = () => readTraffic(name, run).then((now = ["none"]) => now.join(", "));
    const traffic = isChanged && (await insist(read, 2 * interval).catch(unknown));
    console.error(isChanged ? `Traffic: ${traffic}. See the last step above.` : "Nothing was migrated or uploaded.");
    if (progress.next) console.error(progress.next);
    return false;
  }

  function beginUnlessInterrupted(step: string): void {
    signal.throwIfAborted();
    console.log(`\n== ${name}: ${step}\n`);
  }

  /** Throws unless the flags are right for an environment that has a version, or a database, or neither. */
  function checkFlags(hasVersion: boolean, exists: boolean): void {
    if (exists && place.length > 0) {
      throw new Error(`${name} exists already, and its data cannot be moved: leave out ${place.join(" ")}.`);
    }
    if (hasVersion && keys.adds && !keys.revokesAll && keys.given.length === 0) {
      throw new Error(`${worker} has keys already: set API_KEY to all of them, and --new-key adds one.`);
    }
    if (!hasVersion && !keys.change) {
      throw new Error(`The Worker ${worker} does not exist yet. Run the first deployment yourself: it decides where the data is stored.
npm run deploy:${name} -- --new-key [--location=<hint> | --jurisdiction=<name>]`);
    }
    if (!hasVersion && keys.adds && keys.given.length > 0) {
      throw new Error("Unset API_KEY: a first deployment with --new-key takes no other key. Or use --set-keys.");
    }
  }

  /** Checks the version that serves, and sets up its addresses. Returns what is known of it and, unless all are revoked, its given keys. */
  async function checkCurrent(before: Traffic) {
    console.log(before.join(", "));
    const [version, ...others] = before.filter((spec) => !spec.endsWith("@0%")).map((spec) => spec.replace(/@.*/, ""));
    if (!version || others.length > 0) {
      throw new Error(`Somebody has split the traffic between versions by hand. Give all of it to one version first:
npx wrangler versions deploy <version>@100% --env ${name}`);
    }
    const { count, isPending } = await readKeyHistory(version, name, run);
    if (isPending && (keys.adds || !keys.change) && !keys.revokesAll) {
      throw new Error(`A deployment that did not finish, or was rolled back, has changed the keys of ${name}. First set all keys that callers need:
API_KEY=… npm run deploy:${name} -- --set-keys (see "Rotate the keys" in docs/OPERATIONS.md).`);
    }
    // An address leads to whichever version serves, so it can be set up before there is a new one.
    beginUnlessInterrupted("Addresses");
    const base = baseIn(await run(["triggers", "deploy", "--env", name]), smokeUrl);
    console.log(base);
    if (keys.revokesAll) return { version, base, keys: count, accepted: [] };
    beginUnlessInterrupted("Keys");
    const accepted = await acceptedKeys({ base, version }, keys.given, limits()).catch((failure: Error) => {
      if (failure instanceof WrongVersion) throw new Error(`${failure.message} Is that ${name}'s address?`);
      // It must be possible to replace a version that is too broken to answer. Unchanged keys lock nobody out.
      if (keys.change || signal.aborted) throw failure;
      console.log(`${printable(failure.message)}\nThe keys do not change, so the deployment continues.`);
    });
    if (!accepted) return { version, base, keys: count, accepted: keys.given };
    if (accepted.length === 0) {
      throw new Error(`None of the keys in API_KEY is a key of ${name}. Are they another environment's?
See "Rotate the keys" in docs/OPERATIONS.md.`);
    }
    console.log(`The current version accepts ${accepted.length} of ${keys.given.length} given keys.`);
    if (keys.adds && count === 0) console.log(`Any other key of ${name} is removed: how many it has is not known.`);
    if (keys.adds && accepted.length < count) {
      throw new Error(`API_KEY has ${accepted.length} of the ${count} keys of ${name}. --new-key needs all of them.`);
    }
    return { version, base, keys: count, accepted };
  }

  /** The new version's keys, or none if they stay. Prints a new one: all checks passed, and only addresses have changed. */
  function chooseKeys(): string[] {
    signal.throwIfAborted();
    if (!keys.change) return [];
    progress.next = continuation(place);
    if (!keys.adds) return keys.given;
    const key = randomBytes(32).toString("base64url");
    console.log(`\nNew key: ${key}\nStore it now: it is not shown again, and stored nowhere else.`);
    return [...keys.given, key];
  }

  function continuation(place: string[]): string {
    const flags = ["--set-keys", ...(keys.revokesAll ? ["--revoke-all-keys"] : []), ...place].join(" ");
    return `\nTo continue, with all keys that callers need${keys.adds ? ", the new one included" : ""}:\nAPI_KEY=… npm run deploy:${name} -- ${flags}`;
  }

  /** Uploads a version, with keys if they change, and the commit if there is one. `count`: how many keys stay. */
  function upload(command: string[], secret: string[], count = 0): Promise<string> {
    const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim() ?? "";
    // Untracked files count, because an untracked migration is applied too.
    const dirty = git("status", "--porcelain", "--untracked-files") ? "-dirty" : "";
    const tag = `--tag=${git("rev-parse", "--short", "HEAD") || "no-commit"}${dirty}`;
    const subject = keysMark(secret.length, count) + (git("log", "-1", "--format=%s") || "no commit");
    // SKIP_DEPLOY_CHECK tells the build step (scripts/build/build.ts) that this is not a plain `wrangler deploy`. An
    // API_KEY in the environment would win over the one in a file, so both are the same.
    const API_KEY = secret.join(",") || undefined;
    const flags = ["--env", name, tag, `--message=${subject.slice(0, 100)}`];
    const send = (...file: string[]) => run([...command, ...flags, ...file], { API_KEY, SKIP_DEPLOY_CHECK: "true" });
    if (!API_KEY) return send();
    return withFile("animal-store-keys-", JSON.stringify({ API_KEY }), (file) => send(`--secrets-file=${file}`));
  }

  /** Gives all traffic to the version if it passes the test at 0%. Otherwise gives it back, and throws. */
  async function testAndPromote(version: string, base: string, key: string, current: string, before: Traffic) {
    const target = { version, base };
    const tested = [`${current}@100%`, `${version}@0%`];
    const promoted = [`${version}@100%`];
    // Whether Cloudflare lists a version at 0% is not documented, so this deployment's own does not count there.
    const counted = (traffic: Traffic = []) => String(traffic.filter((spec) => spec !== tested[1]).sort());
    const { next } = progress;
    let expected = before;
    try {
      beginUnlessInterrupted(`Smoke test of version ${version}, which does not serve callers yet, at ${base}`);
      progress.next = `\nTo give all traffic back to the current version:
npx wrangler rollback ${current} --env ${name} < /dev/null\n${next}`;
      let isTestable = true;
      await moveTo(tested).catch((failure: Error) => {
        // Cloudflare refuses an older version with other keys. It is not known whether that includes one that already serves.
        if (!keys.change || !failure.message.includes("[code: 10220]")) throw failure;
        isTestable = false;
        console.log("Cloudflare refuses to test other keys before they serve (10220). The test follows at once.");
      });
      if (isTestable) await smoke({ ...target, override: worker }, key, limits(), name);
      beginUnlessInterrupted(`All traffic to version ${version}`);
      await moveTo(promoted);
      await (isTestable ? waitUntilReady(target, limits()) : smoke(target, key, limits(), name));
    } catch (failure) {
      const isTaken = await insist(giveBack, 2 * interval).catch(({ message }) => console.error(printable(message)));
      if (isTaken !== undefined) progress.next = next;
      throw isTaken ? new Error(TAKEN, { cause: failure }) : failure;
    }

    /** Throws if the traffic is not as this deployment left it, or the operator has interrupted. */
    async function moveTo(next: Traffic): Promise<void> {
      if (counted(await readTraffic(name, run)) !== counted(expected)) throw new Error(TAKEN);
      signal.throwIfAborted();
      expected = next;
      // Every version that is not named gets no requests.
      await run(["versions", "deploy", ...next, "-y", "--env", name]);
      console.log(`Traffic: ${next.join(", ")}`);
    }

    /** Whether somebody else has deployed. Their traffic is left alone. */
    async function giveBack(): Promise<boolean> {
      const now = counted(await readTraffic(name, run));
      if (expected === before && now === counted(before)) return false;
      if (![before, tested, promoted].map(counted).includes(now)) return true;
      // `versions deploy` cannot return to other keys (10220). Without a terminal, `rollback` confirms that by itself.
      await run(["rollback", current, "--env", name]);
      console.log(`Traffic: ${current}@100%`);
      return false;
    }
  }
}

/** The base URL: `given`, or that of the address that Wrangler printed. A workers.dev address works at once, a new domain later. */
export function baseIn(output: string, given?: string): string {
  const [, host] = /https:\/\/(\S+\.workers\.dev)$/m.exec(output) ?? /(\S+) \(custom domain/.exec(output) ?? [];
  if (!given && !host) throw new Error("Wrangler did not print an address: set SMOKE_URL to the base URL.");
  return given ?? `https://${host}/v1`;
}

if (import.meta.main) {
  const interruption = new AbortController();
  const progress = { signal: interruption.signal, next: "" };
  const asked = readArguments(USAGE, parseArguments);
  onInterruption((signal, status) => {
    if (interruption.signal.aborted) {
      // A terminal that closes sends it twice.
      if (signal === "SIGHUP") return;
      const command = `npx wrangler deployments status --env ${asked.environment.name}`;
      const message = `ended at once. The last step above may be unfinished.\nTo see which version serves: ${command}`;
      exit(`\n${signal}: ${message}${progress.next}`, status);
    }
    console.error(`\n${signal}: stopping after the current Wrangler command. Press Ctrl-C again to end at once.`);
    process.exitCode = status;
    interruption.abort(new Error(`Interrupted by ${signal}.`));
  });
  if (!(await deploy(asked, progress))) process.exitCode ??= 1;
}
