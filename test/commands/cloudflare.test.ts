// What commands ask Cloudflare for: in which order, and where they stop.

import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { commitAll, git } from "../git.ts";
import { launch, onTerminal, outcome } from "../processes.ts";
import { cloudflare, commit, copies, ENV, edit, folder, haveDeployed, LOGS, place, runScript } from "./cloudflare.ts";

const deploy = (environment: string, env: NodeJS.Dict<string> = {}, ...more: string[]) =>
  runScript(["scripts/deploy.ts", environment, ...more], env);

const IN_PRODUCTION = { API_KEY: "key-of-production" };

/** To both environments at once. */
const deployToEach = () => Promise.all([deploy("staging"), deploy("production", IN_PRODUCTION)]);

const NEXT = '\nWorker-Version in each response names the commit that serves. If callers get errors, see "Symptoms" in';

const BEFORE_UPLOAD = ["bookmark", "query"];
const DEPLOYED = [...BEFORE_UPLOAD, "secrets", "upload", "live", "query", "which commit?", "which key?"];
const inStaging = [...DEPLOYED, "tests in mode deployed with key-of-staging", "which commit?"];
const inProduction = [...DEPLOYED, "tests in mode smoke with key-of-production", "which commit?"];

const FILE = ".wrangler/animals.sql";
const LINE = "INSERT INTO pets (id, name, category_id, status) VALUES (7, 'Rex', 1, 'sold') ON CONFLICT DO NOTHING;\n";
beforeEach(() => place(FILE, LINE));

const NPM_CI = "ci --include=dev --ignore-scripts --no-audit --no-fund";

const failureWith = (message: string) => ({ status: 1, errors: expect.stringContaining(message) });

const eventsIn = (environment: string) =>
  cloudflare.events.filter((event) => event.startsWith(environment)).map((event) => event.replace(/^\w*: /, ""));

// With the command `script` of Linux.
describe.skipIf(process.platform !== "linux")("npm run deploy, on a terminal", () => {
  const deployToBoth = (productionKey: string) =>
    onTerminal("node scripts/deploy.ts", { "API key of production (not shown): ": productionKey }, folder, ENV);

  it("deploys to staging, tests, and goes on to production, without what is not committed", async () => {
    edit("src/http/maintenance.ts", "closed for maintenance", "edited");
    place("migrations/0009_new.sql");
    cloudflare.stores["staging"] = new DatabaseSync(":memory:");
    cloudflare.fails = (event) => {
      if (event === "production: query") place("src/index.ts", "edited meanwhile");
      // One answer after the tests is that of the version before, and is waited for.
      if (cloudflare.serving["staging"] === "stale") cloudflare.serving["staging"] = commit;
      if (/^staging: tests/.test(event)) cloudflare.serving["staging"] = "stale";
      return false;
    };
    const { status, output } = await deployToBoth("key-of-production\n");
    expect(output).toMatch(
      /^Not committed, so not deployed: .*M src.http.maintenance\.ts,.*migrations.0009_new\.sql\s*$/m,
    );
    expect(output).toContain("Skipped: for a reason.");
    expect(output).toMatch(/production has no animals\s+production serves commit \S+ at \S+\s+$/);
    expect(status).toBe(0);
    expect(eventsIn("npm")).toEqual([`${NPM_CI} --offline --silent`]);
    expect([eventsIn("staging"), eventsIn("production")]).toEqual([inStaging, inProduction]);
    expect(cloudflare.events.findIndex((event) => event.startsWith("production"))).toBe(1 + inStaging.length);
    expect(cloudflare.serving).toEqual({ staging: commit, production: commit });
    const migrations = cloudflare.stores["staging"].prepare("SELECT name FROM d1_migrations").all();
    expect(migrations.map(({ name }) => name)).toEqual(readdirSync("migrations").sort());
    expect(cloudflare.upload).toContain(`"workers/tag":"${commit}"`);
    // Stacks in the log are readable. A larger script would take longer to start.
    const [, script = ""] = /javascript\+module\s+(.*?)\r\n--/s.exec(cloudflare.upload) ?? [];
    expect(script).toMatch(/^(async )?function createPet\(/m);
    expect(script).toContain("closed for maintenance");
    expect(gzipSync(script).length).toBeLessThanOrEqual(24 * 1024);
    expect([existsSync(LOGS), copies()]).toEqual([false, []]);
  });

  it("does nothing if production does not have its key", async () => {
    const files = ["staging", "production"].map(haveDeployed);
    cloudflare.fails = (event) => event === "production: which key?";
    const { status, output } = await deployToBoth("mistyped\n");
    expect(status).toBe(1);
    expect(output).toContain(
      "The service does not have this key: status 401, no secret (https://animal-store-production.",
    );
    const advice = `Is it a key of a different environment\\?\\s+If the service rejects every key, remove ${files[1]},`;
    expect(output).toMatch(RegExp(advice));
    expect(cloudflare.events).toEqual(["staging: which key?", "production: which key?"]);
  });

  it("does nothing with staging's key for production", async () => {
    const { status, output } = await deployToBoth("key-of-staging\n");
    expect([status, output]).toEqual([1, expect.stringContaining("must not have an API key of staging")]);
    expect(cloudflare.events).toEqual([]);
  });
});

it("fails in production if a test does, and deploys to staging at the same time", async () => {
  cloudflare.fails = (event) =>
    /^production: tests/.test(event) || (event === "staging: query" && cloudflare.serving["staging"] === commit);
  haveDeployed("staging");
  const [staging, production] = await deployToEach();
  const failed = `
Before this run, production served an unknown commit (address not known), and the restore point was a-bookmark.
production has no animals
The tests failed. If a migration is the cause, see "Undo a migration" in docs/OPERATIONS.md.${NEXT}`;
  expect(production).toMatchObject(failureWith(failed));
  expect(production.errors).toContain(
    "\nTo go back: npm run deploy:production -- <commit>, with the tag of an earlier",
  );
  expect(eventsIn("production")).toEqual(inProduction.slice(0, -1));
  const last = `
Before this run, staging served ea411e4ea411, and the restore point was a-bookmark.
The animals of staging cannot be read.
staging serves commit ${commit} at https://animal-store-staging.acme.workers.dev/v1\n`;
  expect([staging.status, staging.output.slice(-last.length)]).toEqual([0, last]);
  expect(eventsIn("staging")).toEqual(["which key?", "which commit?", ...inStaging]);
  expect(globSync("deployment-*", { cwd: join(folder, ".wrangler") }).sort()).toEqual([
    "deployment-production.jsonl",
    "deployment-staging.jsonl",
  ]);
});

it("uploads nothing if a migration fails, and fails if somebody deploys meanwhile", async () => {
  // Whatever else a service says about a key, a deployment may repair it.
  for (const environment of ["staging", "production"]) haveDeployed(environment);
  cloudflare.serving["staging"] = "broken";
  cloudflare.fails = (event) => {
    if (/^production: tests/.test(event)) cloudflare.serving["production"] = "07e407e407e4";
    return event === "staging: query";
  };
  const [staging, production] = await deployToEach();
  expect(staging).toMatchObject(failureWith(NEXT));
  expect(staging.errors).toContain("staging served an unknown commit (status 500), and");
  expect(staging.errors).not.toContain("To go back");
  expect(eventsIn("staging")).toEqual(BEFORE_UPLOAD);
  expect(production).toMatchObject(failureWith(`/v1 serves 07e407e407e4, and not commit ${commit}.${NEXT}`));
  expect(production.errors).toMatch(/\nTo go back: npm run deploy:production -- ea411e4ea411\n$/);
  expect(eventsIn("production")).toEqual(["which key?", "which commit?", ...inProduction]);
});

it("goes back to an earlier commit, in the account that npm run backup uses", async () => {
  edit("src/http/maintenance.ts", "closed for maintenance", "edited");
  commitAll(folder);
  edit("wrangler.toml", "animal-store-production", "animal-store-renamed");
  place(".env", "CLOUDFLARE_ACCOUNT_ID=account-of-staging");
  place(".env.production", "CLOUDFLARE_ACCOUNT_ID=account-of-production");
  cloudflare.isClosed = true;
  cloudflare.stores["production"]?.exec(LINE);
  const env = { ...IN_PRODUCTION, CLOUDFLARE_ACCOUNT_ID: undefined };
  const refused = await deploy("production", env);
  const { status, output } = await deploy("production", env, commit);
  git(folder, "reset", "--quiet", "--hard", commit);
  const saved = await runScript(["scripts/backup.ts", "production", ".wrangler/backup.sql"], env);
  expect(refused).toMatchObject(failureWith("wrangler.toml has changes"));
  expect([status, output]).toEqual([
    0,
    expect.stringContaining(`production had animals up to the id 7
production is closed, so it cannot be tested. Callers get 503: open it with
npx wrangler secret delete MAINTENANCE --env production
production serves commit ${commit} at `),
  ]);
  expect(cloudflare.upload).toContain("closed for maintenance");
  expect([saved.status, ...cloudflare.accounts]).toEqual([0, "account-of-production"]);
});

it("tries npm's cache and then the registry, and ends before it asks Cloudflare for anything", async () => {
  cloudflare.fails = (event) => event.startsWith("npm");
  expect(await deploy("staging")).toMatchObject(failureWith("npm failed, so nothing was deployed."));
  expect(cloudflare.events).toEqual([`npm: ${NPM_CI} --offline --silent`, `npm: ${NPM_CI} --fetch-retries=0`]);
});

const WHERE = "An API key of production is required: enter it on a terminal";

it.each([
  ["neither an environment nor a commit", ["demo"], "key", "demo is not a commit of this clone."],
  ["an empty commit", ["staging", ""], "key", "usage: "],
  ["two commits", ["HEAD", "HEAD"], "key", "usage: "],
  ["no key", ["production"], "", `${WHERE}, or set the environment variable API_KEY.`],
  ["staging's key alone", [], "key", `${WHERE} (without one, run npm run deploy:staging, and then`],
])("does nothing with %s", async (_, args, API_KEY, message) => {
  expect(await runScript(["scripts/deploy.ts", ...args], { API_KEY })).toMatchObject(failureWith(message));
  expect(cloudflare.events).toEqual([]);
});

it("npm run load and npm run backup use the deployed database", async () => {
  const { output, errors } = await runScript(["scripts/load.ts", "staging", FILE]);
  const has = "has 1 animals up to the id 7\n";
  const added = "1 animals added, 0 skipped (id or Idempotency-Key taken)";
  expect([errors, output]).toEqual(["", expect.stringContaining(`is loaded.\n1 lines: ${added}; staging ${has}`)]);
  const backup = await runScript(["scripts/backup.ts", "staging", ".wrangler/backup.sql"]);
  expect(backup.output).toBe(`Saved: .wrangler/backup.sql ${has}`);
  expect(cloudflare.events).toEqual(["staging: query", "staging: import", "staging: query"]);
});

it("npm run load goes on without a proof or a count, and says which part failed and why", async () => {
  delete cloudflare.stores["staging"];
  const { status, output, errors } = await runScript(["scripts/load.ts", "staging", FILE]);
  expect([status, output]).toEqual([1, ""]);
  expect(errors).toContain("The file is not proven, because the tables of staging cannot be made here: ");
  expect(errors).toContain("The animals of staging could not be counted: ");
  expect(errors).toMatch(
    /\nPart 1 \(.*\) is not loaded: .*see "A deleted database" .* Run the same command again\.\n$/,
  );
});

it("npm run backup does not overwrite a file that appears meanwhile", async () => {
  cloudflare.fails = () => place("saved.sql", "kept") !== undefined;
  expect(await runScript(["scripts/backup.ts", "staging", "saved.sql"])).toMatchObject(failureWith("EEXIST"));
  expect(readFileSync(join(folder, "saved.sql"), "utf8")).toBe("kept");
});

it("npm run backup keeps a file that cannot be loaded under a different name", async () => {
  cloudflare.stores["staging"]?.exec(`PRAGMA ignore_check_constraints = ON; ${LINE.replace("sold", "lost")}`);
  const { status, errors } = await runScript(["scripts/backup.ts", "staging", ".wrangler/backup.sql"]);
  expect([status, errors]).toEqual([1, expect.stringContaining("\nLine 2: CHECK constraint failed: status IN")]);
  expect(errors).toContain("\nThe backup is not proven, and is kept as .wrangler/backup.sql.unproven.\n");
  expect(readdirSync(join(folder, ".wrangler")).filter((name) => /backup/.test(name))).toEqual(["backup.sql.unproven"]);
});

// Windows has no signals.
it.skipIf(process.platform === "win32").each([
  ["load", ["staging", FILE], "staging: import"],
  ["backup", ["staging", "saved.sql"], "staging: query"],
  ["deploy", ["staging"], `npm: ${NPM_CI} --offline --silent`],
])("npm run %s leaves no copy after Ctrl-C", async (name, args, event) => {
  haveDeployed("staging");
  const child = launch(process.execPath, [`scripts/${name}.ts`, ...args], folder, ENV);
  const found = () => [...copies(), ...globSync("{.wrangler/load-*,*.partial}", { cwd: folder })];
  let before: string[] = [];
  cloudflare.fails = (now) => {
    before = found();
    if (now === event) process.kill(-Number(child.pid), "SIGINT");
    return false;
  };
  expect((await outcome(child)).status).not.toBe(0);
  expect([before.length, found(), cloudflare.events.at(-1)]).toEqual([1, [], event]);
});

const setup = (...args: string[]) => runScript(["scripts/setup.ts", ...args]);

it("npm run setup creates what is missing, prints the key that it sets, and continues after a failure", async () => {
  delete cloudflare.stores["staging"];
  cloudflare.keys = { production: "a-key" };
  cloudflare.fails = (event) => event === "staging: new key";
  const failed = await setup("--location=weur");
  expect(failed).toMatchObject({ status: 1, output: expect.stringMatching(/^API key of staging: [\w-]{43}$/m) });
  expect(failed.output).toContain("Successfully created DB 'animal-store-staging' using primary location hint weur\n");
  expect(failed.output).not.toContain("database_id");
  const created = ["staging: new database", "staging: new key"];
  expect(cloudflare.events.splice(0)).toEqual([": databases", "staging: secrets", ...created]);

  cloudflare.fails = () => false;
  const { status, output } = await setup("staging", "--location=weur");
  expect([status, output]).toEqual([0, expect.stringContaining("Then: npm run deploy:staging\n")]);
  expect(/^API key of staging: (.*)$/m.exec(output)?.[1]).toBe(cloudflare.keys["staging"]);
  expect(cloudflare.events.splice(0)).toEqual([": databases", "staging: secrets", "staging: new key"]);

  const again = await setup("--location=weur");
  const found = /^(\w+ has the database animal-store-\w+\.\n\w+ has an API key, which stays as it is\.\n){2}\nThen: /;
  expect([again.status, again.output]).toEqual([0, expect.stringMatching(found)]);
  expect(cloudflare.events).toEqual([": databases", "staging: secrets", "production: secrets"]);
});

it.each([
  ["a key without a database", { stores: {} }, 'not animal-store-production: see "A deleted database"'],
  ["secrets that cannot be listed", { fails: (event: string) => /secrets/.test(event) }, "as the test wants"],
])("npm run setup creates nothing if it finds %s", async (_, found, message) => {
  Object.assign(cloudflare, found);
  expect(await setup("production", "--location=weur")).toMatchObject(failureWith(message));
  expect(cloudflare.events).toEqual([": databases", "production: secrets"]);
});

it.each([
  [[], "usage: npm run setup"],
  [["demo", "--location=weur"], "usage: npm run setup"],
  [["--location=mars"], "usage: npm run setup"],
  [["--location=weur", "--jurisdiction=eu"], "usage: npm run setup"],
  [
    ["--jurisdiction=eu"],
    "wrangler.toml records --location=weur for staging; you asked for --jurisdiction=eu.\nChange",
  ],
  // With the place of production alone.
  [["--location=weur"], "records no place for staging", () => edit("wrangler.toml", / # --location=\w+/, "")],
  [["--location=weur"], "wrangler.toml has changes", () => edit("wrangler.toml", "73001", "1")],
  [["--location=weur"], "wrangler.jsonc.\nMove this clone", () => place("wrangler.jsonc")],
])("npm run setup does nothing with %j if it says: %s", async (args, message, change = () => {}) => {
  change();
  expect(await setup(...args)).toMatchObject(failureWith(message));
  expect(cloudflare.events).toEqual([]);
});
