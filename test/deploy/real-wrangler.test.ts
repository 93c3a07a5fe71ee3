// Deployments of staging with the real Wrangler and the real Git: what is missing, a deployment, one that is ended, and
// a plain `wrangler deploy`. What a deployment decides is in decisions.test.ts.

import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { versionId } from "../account.ts";
import { startCloudflare } from "../cloudflare.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { launch, outcome } from "../processes.ts";

const WINDOWS = process.platform === "win32";
const cloudflare = await startCloudflare();
const folder = copyProject();
// For temporary files, so that a test sees what is left of them. Git ignores it.
const temporary = join(folder, "dist/temporary");
mkdirSync(temporary, { recursive: true });
afterEach(() => {
  cloudflare.onMoment = () => {};
});
afterAll(async () => {
  await cloudflare[Symbol.asyncDispose]();
  removeProject(folder);
});

/** Starts a command in the folder, with the account. */
function start(command: string) {
  const env = { ...cloudflare.env, XDG_CONFIG_HOME: join(folder, "dist/config"), TMPDIR: temporary };
  const [program = "", ...args] = command.split(" ");
  const child = launch(program, args, folder, env);
  return { child, ended: outcome(child) };
}
const run = (command: string) => start(command).ended;
const secretFiles = () => globSync(join(temporary, "animal-store-*/secrets.json"));

// Wrangler reads this file too, and nothing in it may reach an environment.
writeFileSync(join(folder, ".env"), "API_KEY=local\n");

/** The foot of the page. */
const foot = () => /<footer>(.*)<\/footer>/.exec(readFileSync(join(folder, "dist/site/index.html"), "utf8"))?.[1];

it("says which of Wrangler's commands are missing", async () => {
  // The folder is not a Git repository yet, like an archive.
  const { status, output, errors } = await run("npm run deploy:staging");
  expect(output).toContain("\n== staging: Commit unknown\n");
  expect(errors).toMatch(
    /\nnpx wrangler secret put API_KEY --env staging\nNothing has changed in animal-store-staging\. /,
  );
  expect(status).toBe(1);
  expect(cloudflare.requests.filter((request) => !request.startsWith("GET "))).toEqual([]);
});

it("deploys the commit, to the trial Worker first", async () => {
  // `d1 create`, and the draft that `secret put` uploads.
  const environment = new DatabaseSync(":memory:");
  cloudflare.databases["animal-store-staging"] = environment;
  cloudflare.live.staging = "draft";
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  const git = (...args: string[]) => execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" });
  git("init", "--quiet");
  // The packages are a link here, which .gitignore does not cover. wrangler.json: see below.
  writeFileSync(join(folder, ".git/info/exclude"), "node_modules\nwrangler.json");
  git("add", "--all");
  git("commit", "--quiet", "--message", "first");
  const commit = git("rev-parse", "--short", "HEAD").trim();
  const modes: number[] = [];
  cloudflare.onMoment = (request) => {
    if (request.startsWith("PUT /workers/")) modes.push(...secretFiles().map((file) => statSync(file).mode & 0o777));
  };
  const { status, output, errors } = await run("npm run deploy:staging");
  expect(errors).not.toContain("WARNING");
  expect(output).toContain(`\n== staging: Commit ${commit}\n`);
  const base = "https://animal-store-staging.operator.workers.dev/v1";
  expect(output).toContain(`: version ${versionId(2)} of animal-store-staging answers at ${base}\n`);
  expect(status).toBe(0);
  expect(cloudflare.live).toEqual({ staging: versionId(2), "staging-trial": versionId(1) });
  // Wrangler has created the trial's database.
  expect(Object.keys(cloudflare.databases)).toEqual(["animal-store-staging", "animal-store-staging-trial"]);
  for (const database of Object.values(cloudflare.databases)) {
    const applied = database.prepare("SELECT name FROM d1_migrations ORDER BY id").all();
    expect(applied.map(({ name }) => name)).toEqual(readdirSync(join(folder, "migrations")).sort());
  }
  const [trial, live] = cloudflare.uploads;
  expect([trial?.section, live?.section]).toEqual(["staging-trial", "staging"]);
  for (const upload of [trial, live]) expect(upload?.annotations).toEqual({ "workers/tag": commit });
  expect(trial?.modules.replace(trial.section, "")).toBe(live?.modules.replace(live.section, ""));
  expect(foot()).toBe(`Animal store API 1.0.0, built from commit <code>${commit}</code>`);
  // The names and lines of a stack in the log are those of the source.
  expect(live?.modules).toMatch(/^(async )?function createPet\(/m);
  // Wrangler would keep a copy of what it prints.
  expect(globSync(join(folder, "dist/config/.wrangler/logs/*"))).toEqual([]);
  if (!WINDOWS) expect(modes).toEqual([0o600]);
  expect(readdirSync(temporary).filter((name) => name.startsWith("animal-store-"))).toEqual([]);
});

it("is deployed by Wrangler alone, which says what that leaves out", async () => {
  const { status, output } = await run("npx wrangler deploy --env staging");
  expect(output).toMatch(/This is commit [0-9a-f]{7,}, and callers get it without a test. Migrations are not applied/);
  expect(status).toBe(0);
  expect(cloudflare.live.staging).toBe(versionId(3));
});

// On Windows, one process cannot send a signal to another.
describe.skipIf(WINDOWS)("a signal", () => {
  it("ends it at once, and removes the key, even if the API hangs", async () => {
    const { child, ended } = start("node scripts/deploy/deploy.ts staging");
    cloudflare.onMoment = (request) => {
      if (request !== "POST /workers/scripts/animal-store-staging-trial/versions") return undefined;
      expect(secretFiles().length).toBe(1);
      // A terminal that closes sends it twice.
      for (const delay of [0, 5]) setTimeout(() => child.kill("SIGHUP"), delay);
      return new Promise(() => {});
    };
    const { status, errors } = await ended;
    expect(errors).toMatch(
      /^\nSIGHUP has ended the deployment of staging\. Nothing has changed in animal-store-staging\. .*\n$/,
    );
    expect(status).toBe(129);
    expect(secretFiles()).toEqual([]);
    expect(cloudflare.live.staging).toBe(versionId(3));
  });

  it("waits for Wrangler, which puts the version live after only the trial's tables were dropped", async () => {
    const { "animal-store-staging": environment, "animal-store-staging-trial": trial } = cloudflare.databases;
    for (const database of [environment, trial]) database?.exec("CREATE TABLE marked (id INTEGER)");
    // Here or in any folder above, this would win over wrangler.toml. Git ignores it.
    writeFileSync(join(folder, "wrangler.json"), '{"name": "different"}');
    const { child, ended } = start("node scripts/deploy/deploy.ts staging");
    const version = versionId(cloudflare.uploaded + 2);
    cloudflare.onMoment = (request) => {
      if (request === "POST /workers/scripts/animal-store-staging/deployments") child.kill("SIGINT");
    };
    const { status, output, errors } = await ended;
    expect(output).not.toContain("is deployed");
    expect(errors).toContain("\nSIGINT: waiting for Wrangler, for at most 30 seconds.\n");
    expect(errors).toContain(
      `\nSIGINT has ended the deployment of staging. Version ${version} is live. The version before: `,
    );
    expect(status).toBe(130);
    expect(cloudflare.live.staging).toBe(version);
    expect(() => environment?.exec("SELECT * FROM marked")).not.toThrow();
    expect(() => trial?.exec("SELECT * FROM marked")).toThrow("no such table");
  });
});
