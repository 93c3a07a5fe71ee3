// Brings one environment up to date: its database, the migrations, the Worker. A new version meets callers only after the
// smoke test has passed on it where they are; where anything fails, or the operator presses Ctrl-C, the one before serves
// on alone.

import { spawnSync } from "node:child_process";
import { constants } from "node:os";
import { Unanswered, untilReady, type VersionTarget } from "./poll.ts";
import { readArguments } from "./arguments.ts";
import { currentShares, type Share, setShares, whatServes } from "./traffic.ts";
import { smoke } from "./smoke.ts";
import { type Finished, WranglerFailed, wrangler } from "../wrangler.ts";

const { environment, secrets, key, place, wait, smokeUrl } = readArguments();
const { name, worker, database, domain } = environment;

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (interruption.signal.aborted) return;
    console.error(`\n${signal}: this stops as soon as Wrangler has finished what it does.`);
    process.exitCode = 128 + constants.signals[signal];
    interruption.abort(new Error(`It was interrupted by ${signal}.`));
  });
}

let step = "";
try {
  const shares = await currentShares(environment);
  const { version, base } = shares ? await deployNext(shares) : await deployFirst();
  console.log(`\n${worker}: version ${version} serves, at ${base}.`);
} catch (failure) {
  process.exitCode ??= 1;
  if (failure instanceof WranglerFailed) console.error(failure.output);
  console.error(`\n${name} is not up to date. ${(failure as Error).message}`);
  const where = step ? `look at the step "${step}" above` : "nothing was changed";
  console.error(`${worker}: ${await whatServes(environment)}; ${where}.`);
}

/** There is no version before that could serve on, so this one serves at once. */
async function deployFirst(): Promise<VersionTarget> {
  if (!secrets) {
    throw new Error(`There is no Worker ${worker} yet, and a first deployment is a person's, who says where the data shall live:
npm run deploy:${name} -- --secrets-file <file with API_KEY=<key>> [--location <hint> | --jurisdiction <name>]`);
  }
  begin("The database");
  const { output } = await wrangler(["d1", "list", "--json"], { quiet: true });
  const exists = (JSON.parse(output) as { name: string }[]).some((listed) => listed.name === database);
  if (exists) refusePlace(`The database ${database}`);
  if (exists) console.log(`${database} exists.`);
  else await wrangler(["d1", "create", database, "--update-config=false", ...place]);
  await migrate();

  begin("The Worker");
  const target = targetOf(await upload("deploy"));
  begin(`The smoke test at ${target.base}`);
  await test(target);
  return target;
}

async function deployNext(shares: Share[]): Promise<VersionTarget> {
  const [before, ...others] = shares.filter(({ percentage }) => percentage > 0).map(({ version_id }) => version_id);
  if (!before || others.length > 0) {
    throw new Error(`Callers are split between versions, which somebody has begun by hand. Finish that first:
npx wrangler versions deploy <version>@100% --env ${name}`);
  }
  refusePlace(`The Worker ${worker}`);
  await migrate();

  begin("The new version");
  const { version } = await upload("versions", "upload");
  // Addresses lead to whichever version serves, so that they can be there before the new one is tested at them.
  begin("The addresses");
  const { output } = await wrangler(["triggers", "deploy", "--env", name]);
  const target = targetOf({ version, output });
  try {
    begin(`The smoke test of version ${target.version}, which meets no callers yet, at ${target.base}`);
    await setShares(environment, { [before]: 100, [target.version]: 0 });
    await test({ ...target, override: worker }).catch((failure) => {
      if (!(failure instanceof Unanswered) || failure.instead !== before) throw failure;
      // Without API_KEY in its environment, which would win over the one in the file.
      const file = secrets ? ` --secrets-file ${secrets.file}, with API_KEY unset` : "";
      throw new Error(`${failure.message} The version override was not honoured within ${wait / 1000} s.
If it never is, this deploys without a test beforehand: npx wrangler deploy --env ${name}${file}`);
    });
    begin(`Version ${target.version} for all callers`);
    const now = await currentShares(environment);
    if (!now?.some(({ version_id }) => version_id === target.version)) throw new Error("Somebody else has deployed.");
    interruption.signal.throwIfAborted();
    await setShares(environment, { [target.version]: 100 });
    await untilReady(target, limits());
  } catch (failure) {
    await restore(before, target.version);
    throw failure;
  }
  return target;
}

/** Where the new version has come into the deployment, the one before serves alone again. */
async function restore(before: string, version: string): Promise<void> {
  try {
    const shares = await currentShares(environment);
    if (shares?.some(({ version_id }) => version_id === version)) await setShares(environment, { [before]: 100 });
  } catch (failure) {
    console.error(`${(failure as Error).message} This has version ${before} serve alone:
npx wrangler versions deploy ${before}@100% --env ${name}`);
  }
}

/** Says what comes next, unless the operator has interrupted. */
function begin(next: string): void {
  interruption.signal.throwIfAborted();
  step = next;
  console.log(`\n== ${name}: ${step}\n`);
}

async function migrate(): Promise<void> {
  begin("The migrations");
  await wrangler(["d1", "migrations", "apply", "DB", "--env", name, "--remote"]);
}

/** Uploads a version, with the secrets and with the commit where there are any. */
function upload(...command: string[]): Promise<Finished> {
  const git = (...args: string[]) => spawnSync("git", args, { encoding: "utf8" }).stdout?.trim();
  const commit = git("describe", "--always", "--dirty", "--exclude=*");
  const subject = git("log", "-1", "--format=%s");
  const flags = [
    ...(secrets ? [`--secrets-file=${secrets.file}`] : []),
    ...(commit ? [`--tag=${commit}`] : []),
    ...(subject ? [`--message=${subject.slice(0, 100)}`] : []),
  ];
  // An API_KEY of the environment would win over the one in the file: so there it is the same.
  return wrangler([...command, "--env", name, ...flags], { env: { API_KEY: secrets?.keys } });
}

/** The version that was uploaded, at the address that Wrangler printed. */
function targetOf({ version, output }: Finished): VersionTarget {
  const [, workersDev] = /^ *(https:\/\/\S+\.workers\.dev)$/m.exec(output) ?? [];
  const origin = workersDev ?? (domain && `https://${domain}`);
  const base = smokeUrl ?? (origin && `${origin}/v1`);
  if (!base) throw new Error("Wrangler printed no address: say it in SMOKE_URL.");
  if (!version) throw new Error("Wrangler reported no version.");
  return { base, version };
}

async function test(target: VersionTarget): Promise<void> {
  await untilReady(target, limits());
  await smoke(target, key, limits());
}

function limits() {
  return { until: Date.now() + wait, signal: interruption.signal };
}

function refusePlace(what: string): void {
  if (place.length === 0) return;
  throw new Error(
    `${what} exists, and where its data lives cannot be changed: leave out --location and --jurisdiction.`,
  );
}
