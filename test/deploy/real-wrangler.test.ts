// Deployments of staging with the real Wrangler and the real Git: what is missing, a deployment, one that is ended, and
// a plain `wrangler deploy`. What a deployment decides is in decisions.test.ts.

import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
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
  const { output, errors } = await run("npm run deploy:staging");
  expect(output).toContain("\n== staging: Commit unknown\n");
  expect(errors).toMatch(/\nnpx wrangler secret put API_KEY --env staging\n$/);
  // The draft that this command uploads.
  cloudflare.live.staging = "draft@100%";
  const { status, errors: next } = await run("npm run deploy:staging");
  expect(next).toContain("\nnpx wrangler d1 create animal-store-staging --location=<location>\n");
  expect(status).toBe(1);
  expect(cloudflare.requests.filter((request) => !request.startsWith("GET "))).toEqual([]);
});

it("deploys the commit, to the trial Worker first", async () => {
  cloudflare.databases.push({ uuid: "uuid", name: "animal-store-staging" });
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  const git = (...args: string[]) => execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" });
  git("init", "--quiet");
  // The packages are a link here, which .gitignore does not cover.
  writeFileSync(join(folder, ".git/info/exclude"), "node_modules");
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
  expect(output).toContain(`\nanimal-store-staging: version ${versionId(2)} serves all requests at ${base}\n`);
  expect(output).not.toContain("without a test");
  expect(status).toBe(0);
  expect(cloudflare.live).toEqual({ staging: `${versionId(2)}@100%`, "staging-trial": `${versionId(1)}@100%` });
  const applied = cloudflare.sqlite.prepare("SELECT name FROM d1_migrations ORDER BY id").all();
  expect(applied.map(({ name }) => name)).toEqual(readdirSync(join(folder, "migrations")).sort());
  const [trial, live] = cloudflare.uploads;
  expect([trial?.section, live?.section]).toEqual(["staging-trial", "staging"]);
  for (const upload of [trial, live]) expect(upload?.annotations).toEqual({ "workers/tag": commit });
  expect(trial?.modules).toContain("Trial-Key");
  expect(live?.modules).not.toContain("Trial-Key");
  expect(foot()).toBe(`Animal store API 1.0.0, built from commit <code>${commit}</code>`);
  // The names and lines of a stack in the log are those of the source.
  expect(live?.modules).toMatch(/^(async )?function createPet\(/m);
  // Wrangler would keep a copy of what it prints.
  expect(existsSync(join(folder, ".wrangler/logs"))).toBe(false);
  if (!WINDOWS) expect(modes).toEqual([0o600]);
  expect(readdirSync(temporary).filter((name) => name.startsWith("animal-store-"))).toEqual([]);
});

it("is deployed by Wrangler alone, which says what that leaves out", async () => {
  const { status, output } = await run("npx wrangler deploy --env staging");
  expect(output).toMatch(/This is commit [0-9a-f]{7,}, and callers get it without a test. Migrations are not applied/);
  expect(status).toBe(0);
  expect(cloudflare.live.staging).toBe(`${versionId(3)}@100%`);
});

// On Windows, one process cannot send a signal to another.
it.skipIf(WINDOWS)("stops after the current Wrangler command if the terminal closes", async () => {
  const { child, ended } = start("node scripts/deploy/deploy.ts staging");
  cloudflare.onMoment = (request) => {
    if (!request.endsWith("/time_travel/bookmark")) return;
    child.kill("SIGHUP");
    // A terminal that closes sends it twice.
    setTimeout(() => child.kill("SIGHUP"), 50);
  };
  const { status, output, errors } = await ended;
  expect(output).toMatch(/\n== staging: Bookmark of the database.*\n\n0{8}-\S+\n$/);
  expect(errors).toMatch(
    /\nThe deployment of staging failed\. This deployment has not changed .*\nInterrupted by SIGHUP\.\n/,
  );
  expect(status).toBe(129);
});

it.skipIf(WINDOWS)("ends at once at the second Ctrl-C, and removes the key, even if the API hangs", async () => {
  const { child, ended } = start("node scripts/deploy/deploy.ts staging");
  const interrupt = () => child.pid && process.kill(-child.pid, "SIGINT");
  cloudflare.onMoment = (request) => {
    if (request !== "POST /workers/scripts/animal-store-staging-trial/versions") return undefined;
    expect(secretFiles().length).toBe(1);
    // npm can pass on the first one, so that it arrives twice.
    for (const delay of [0, 5, 1000]) setTimeout(interrupt, delay);
    return new Promise(() => {});
  };
  const { status, errors } = await ended;
  expect(status).toBe(130);
  expect(secretFiles()).toEqual([]);
  expect(errors).toBe(`
SIGINT: stopping after the current Wrangler command. Press Ctrl-C again to end at once.

Ended at once. If "Deployment" is not among the steps above, callers get the same code as before. If it is,
Cloudflare may refuse to change secrets until a deployment succeeds:\nnpm run deploy:staging\n`);
  expect(cloudflare.live.staging).toBe(`${versionId(3)}@100%`);
});
