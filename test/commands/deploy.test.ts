// Deployments, to a server that replaces Cloudflare: in which order they do what, and where they stop.

import { existsSync, globSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { git } from "../git.ts";
import { launch, onTerminal, outcome } from "../processes.ts";
import { TABLES } from "../tables.ts";
import { cloudflare, commit, ENV, folder, haveDeployed, LOGS, place, runScript } from "./cloudflare.ts";

const deploy = (environment: string, env: NodeJS.Dict<string> = {}) =>
  runScript(["scripts/deploy.ts", environment], env);

/** To both environments at once. */
const deployToEach = () => Promise.all([deploy("staging"), deploy("production", { API_KEY: "key-of-production" })]);

const NEXT = '\nWorker-Version in each response names the commit that serves. If callers get errors, see "Symptoms" in';

const BEFORE_UPLOAD = ["bookmark", "query"];
const DEPLOYED = [...BEFORE_UPLOAD, "secrets", "upload", "live", "which commit?", "which key?"];
const inStaging = [...DEPLOYED, "tests in mode deployed with key-of-staging", "which commit?"];
const inProduction = [...DEPLOYED, "tests in mode smoke with key-of-production", "which commit?"];

const eventsIn = (environment: string) =>
  cloudflare.events.filter((event) => event.startsWith(environment)).map((event) => event.replace(/^\w*: /, ""));

// With the command `script` of Linux.
describe.skipIf(process.platform !== "linux")("npm run deploy, on a terminal", () => {
  const deployToBoth = (productionKey: string) =>
    onTerminal("node scripts/deploy.ts", { "API key of production (not shown): ": productionKey }, folder, ENV);

  it("deploys to staging, tests, and goes on to production, but not with a file that was edited", async () => {
    cloudflare.fails = (event) => {
      if (event === "production: query") place("README.md", "edited");
      // One answer after the tests is that of the version before, and is waited for.
      if (cloudflare.serving["staging"] === "stale") cloudflare.serving["staging"] = commit;
      if (/^staging: tests/.test(event)) cloudflare.serving["staging"] = "stale";
      return false;
    };
    const { status, output } = await deployToBoth("key-of-production\n");
    git(folder, "checkout", "--quiet", ".");
    expect(output).toContain("Skipped: for a reason.");
    expect(output).toContain("README.md");
    expect(status).toBe(1);
    expect([eventsIn("staging"), eventsIn("production")]).toEqual([inStaging, BEFORE_UPLOAD]);
    expect(cloudflare.events.findIndex((event) => event.startsWith("production"))).toBe(inStaging.length);
    expect(cloudflare.serving).toEqual({ staging: commit, production: "earlier" });
    expect(cloudflare.upload).toContain(`"workers/tag":"${commit}"`);
    // Stacks in the log are readable. A larger script would take longer to start.
    const [, script = ""] = /javascript\+module\s+(.*?)\r\n--/s.exec(cloudflare.upload) ?? [];
    expect(script).toMatch(/^(async )?function createPet\(/m);
    expect(gzipSync(script).length).toBeLessThanOrEqual(24 * 1024);
    expect(existsSync(LOGS)).toBe(false);
  });

  it("does nothing if production does not have its key", async () => {
    const files = ["staging", "production"].map(haveDeployed);
    cloudflare.fails = (event) => event === "production: which key?";
    const { status, output } = await deployToBoth("mistyped\n");
    expect(status).toBe(1);
    expect(output).toContain(
      "The service does not have this key: status 401, no secret (https://animal-store-production.",
    );
    expect(output).toMatch(RegExp(`\nIf it rejects every key, remove ${files[1]}, and run this again\\.\\s*$`));
    expect(cloudflare.events).toEqual(["staging: which key?", "production: which key?"]);
  });

  it("does nothing with staging's key for production", async () => {
    const { status, output } = await deployToBoth("key-of-staging\n");
    expect([status, output]).toEqual([1, expect.stringContaining("must not have an API key of staging")]);
    expect(cloudflare.events).toEqual([]);
  });
});

it("fails in production if a test does, and deploys to staging at the same time", async () => {
  cloudflare.fails = (event) => /^production: tests/.test(event);
  haveDeployed("staging");
  // As an interrupted run leaves it.
  place(".wrangler/deployment-production.jsonl.new", '{"type":"deploy","targets":["https://old.acme.workers.dev"]}\n');
  const [staging, production] = await deployToEach();
  const failed = `
Before this run, production served an unknown commit, and the bookmark was a-bookmark.
The tests failed. If a migration is the cause, see "Undo a migration" in docs/OPERATIONS.md.${NEXT}`;
  expect([production.status, production.errors]).toEqual([1, expect.stringContaining(failed)]);
  expect(eventsIn("production")).toEqual(inProduction.slice(0, -1));
  const last = `
Before this run, staging served earlier, and the bookmark was a-bookmark.
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
  haveDeployed("staging");
  cloudflare.serving["staging"] = "broken";
  cloudflare.fails = (event) => {
    if (/^production: tests/.test(event)) cloudflare.serving["production"] = "other";
    return event === "staging: query";
  };
  const [staging, production] = await deployToEach();
  expect([staging.status, staging.errors]).toEqual([1, expect.stringContaining(NEXT)]);
  expect(eventsIn("staging")).toEqual(BEFORE_UPLOAD);
  const message = `/v1 serves other, and not commit ${commit}.${NEXT}`;
  expect([production.status, production.errors]).toEqual([1, expect.stringContaining(message)]);
  expect(eventsIn("production")).toEqual(inProduction);
});

it("applies no migration that was added meanwhile", async () => {
  cloudflare.fails = (event) => {
    if (event.endsWith("bookmark")) place("migrations/0009_new.sql");
    return false;
  };
  const { status, errors } = await deploy("production");
  rmSync(join(folder, "migrations/0009_new.sql"));
  expect([status, errors]).toEqual([1, expect.stringContaining("?? migrations/0009_new.sql")]);
  expect(eventsIn("production")).toEqual(["bookmark"]);
});

it("is refused by Cloudflare without an environment", async () => {
  const { status } = await runScript([createRequire(import.meta.url).resolve("wrangler"), "deploy"]);
  expect([status, eventsIn(":").at(-1)]).toEqual([1, "upload"]);
  expect(cloudflare.upload).toContain('"type":"d1","id":"DB"');
});

const WHERE = "An API key of production is required: enter it on a terminal";

it.each([
  ["an unknown environment", ["demo"], "key", "usage: "],
  ["an empty environment", [""], "key", "usage: "],
  ["no key", ["production"], "", `${WHERE}, or set the environment variable API_KEY.`],
  ["staging's key alone", [], "key", `${WHERE} (without one, run npm run deploy:staging, and then`],
])("does nothing with %s", async (_, args, API_KEY, message) => {
  const { status, errors } = await runScript(["scripts/deploy.ts", ...args], { API_KEY });
  expect([status, errors]).toEqual([1, expect.stringContaining(message)]);
  expect(cloudflare.events).toEqual([]);
});

const FILE = ".wrangler/animals.sql";
const LINE = "INSERT INTO pets (id, name, category_id, status) VALUES (7, 'Rex', 1, 'sold') ON CONFLICT DO NOTHING;\n";

/** A store with the project's tables and Wrangler's, which answers the queries of a test. */
function openStore(): DatabaseSync {
  place(FILE, LINE);
  cloudflare.store = new DatabaseSync(":memory:");
  cloudflare.store.exec(`${TABLES} CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT)`);
  return cloudflare.store;
}

it("npm run load and npm run backup use the deployed database", async () => {
  const store = openStore();
  // An import adds the animal.
  cloudflare.fails = (event) => event === "staging: import" && store.exec(LINE) !== undefined;
  const { output, errors } = await runScript(["scripts/load.ts", "staging", FILE]);
  expect([errors, cloudflare.files]).toEqual(["", [expect.stringMatching(/^-- Part 1 .*\nINSERT .*;\n$/)]]);
  const has = "has 1 animals up to the id 7\n";
  const added = "1 animals added, 0 skipped (id or Idempotency-Key taken)";
  expect(output).toContain(`is loaded.\n1 lines: ${added}; staging ${has}`);
  const backup = await runScript(["scripts/backup.ts", "production", ".wrangler/backup.sql"]);
  expect(backup.output).toBe(`Saved: .wrangler/backup.sql ${has}`);
  expect(cloudflare.events).toEqual(["staging: query", "staging: import", "staging: query", "production: query"]);
});

it("npm run load goes on without a proof or a count, and says which part failed and why", async () => {
  openStore();
  cloudflare.fails = (event) => event.startsWith("staging: ");
  const { status, output, errors } = await runScript(["scripts/load.ts", "staging", FILE]);
  expect([status, output, cloudflare.events]).toEqual([1, "", ["staging: query", "staging: import"]]);
  expect(errors).toContain("The file is not proven, because the tables of staging cannot be made here: ");
  expect(errors).toContain("The animals of staging could not be counted: ");
  expect(errors).toMatch(
    /\nPart 1 \(.*\) is not loaded: .* as the test wants \[code: 7500\]\. Run the same command again\.\n$/,
  );
});

it("npm run backup keeps a file that cannot be loaded under a different name", async () => {
  openStore().exec(`PRAGMA ignore_check_constraints = ON; ${LINE.replace("sold", "lost")}`);
  const { status, errors } = await runScript(["scripts/backup.ts", "staging", ".wrangler/backup.sql"]);
  expect([status, errors]).toEqual([1, expect.stringContaining("\nLine 2: CHECK constraint failed: status IN")]);
  expect(errors).toContain("\nThe backup is not proven, and is kept as .wrangler/backup.sql.unproven.\n");
  expect(readdirSync(join(folder, ".wrangler")).filter((name) => /backup/.test(name))).toEqual(["backup.sql.unproven"]);
});

// Windows has no signals.
it.skipIf(process.platform === "win32").each([
  ["load", "staging: import", FILE],
  ["backup", "staging: query", "saved.sql"],
])("npm run %s leaves no copy of animals after Ctrl-C", async (name, event, file) => {
  openStore();
  const child = launch(process.execPath, [`scripts/${name}.ts`, "staging", file], folder, ENV);
  const copies = () => globSync("{.wrangler/load-*,*.partial}", { cwd: folder });
  let before: string[] = [];
  cloudflare.fails = (now) => {
    before = copies();
    if (now === event) process.kill(-Number(child.pid), "SIGINT");
    return false;
  };
  expect((await outcome(child)).status).not.toBe(0);
  expect([before.length, copies()]).toEqual([1, []]);
});
