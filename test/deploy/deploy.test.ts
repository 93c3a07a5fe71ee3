// Staging with the real Wrangler: what is missing, a deployment, one that is interrupted, and a plain `wrangler deploy`. What a
// deployment decides is in deployment.test.ts.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { startCloudflare } from "../cloudflare.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";

const WINDOWS = process.platform === "win32";
const cloudflare = await startCloudflare();
const { base } = cloudflare;
const folder = copyProject();
afterAll(async () => {
  await cloudflare[Symbol.asyncDispose]();
  removeProject(folder);
});

/** Starts a command in the folder, with the account. */
function start(command: string, env: NodeJS.Dict<string> = {}) {
  const own = { API_KEY: "key", SMOKE_URL: base, XDG_CONFIG_HOME: folder };
  const [program = "", ...args] = command.split(" ");
  const child = launch(program, args, folder, { ...own, ...cloudflare.env, ...env });
  return { child, ended: outcome(child) };
}
const run = (command: string, env?: NodeJS.Dict<string>) => start(command, env).ended;

// Wrangler reads this file too, and nothing in it may reach an environment.
writeFileSync(join(folder, ".env"), "API_KEY=local\n");

/** The foot of the page. */
const foot = () => /<footer>(.*)<\/footer>/.exec(readFileSync(join(folder, "dist/site/index.html"), "utf8"))?.[1];

// `npm ci` has built the site, too. The folder is not a Git repository yet, like an archive.
await run("npm run build");

it("says which of Wrangler's commands are missing", async () => {
  expect(foot()).toBe("Animal store API 1.0.0");
  expect((await run("npm run deploy:staging")).errors).toContain("\nnpx wrangler secret put API_KEY --env staging\n");
  // The draft that this command uploads.
  cloudflare.traffic = "draft@100%";
  const { status, errors } = await run("npm run deploy:staging");
  expect(errors).toContain("\nnpx wrangler d1 create animal-store-staging --location=weur\n");
  expect(status).toBe(1);
  expect(cloudflare.requests.filter((request) => !request.startsWith("GET "))).toEqual([]);
});

it("is deployed, with the commit", async () => {
  cloudflare.databases.push({ uuid: "uuid", name: "animal-store-staging" });
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  const git = (...args: string[]) => execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" });
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", "first");
  // An untracked migration is applied, too.
  writeFileSync(join(folder, "migrations/9999_untracked.sql"), "SELECT 1;");
  const commit = `${git("rev-parse", "--short", "HEAD").trim()}-dirty`;
  const { status, output } = await run("npm run deploy:staging");
  expect(output).toContain(`Commit ${commit} (with changes that are not committed)`);
  expect(output.trim().split("\n").at(-1)).toBe(
    `animal-store-staging: version version1 serves all requests at ${base}`,
  );
  // Wrangler's advice, which would skip the smoke test.
  expect(output).not.toMatch(/triggers deploy|to production traffic/);
  expect([status, cloudflare.traffic]).toEqual([0, "version1@100%"]);
  const applied = cloudflare.sqlite.prepare("SELECT name FROM d1_migrations ORDER BY id").all();
  expect(applied.map(({ name }) => name)).toEqual(readdirSync(join(folder, "migrations")).sort());
  const [{ annotations, modules } = { modules: "" }] = cloudflare.uploads;
  expect(annotations).toEqual({ "workers/tag": commit });
  expect(foot()).toBe(`Animal store API 1.0.0, built from commit <code>${commit}</code>`);
  // The names and lines of a stack in the log are those of the source.
  expect(modules).toMatch(/^(async )?function createPet\(/m);
  // Wrangler would keep a copy of what it prints.
  expect(existsSync(join(folder, ".wrangler/logs"))).toBe(false);
});

// On Windows, one process cannot send a signal to another.
it.skipIf(WINDOWS)("stops at the next safe moment if the terminal closes", async () => {
  const { child, ended } = start("node scripts/deploy/deploy.ts staging");
  cloudflare.onMoment = () => {
    cloudflare.onMoment = () => {};
    child.kill("SIGHUP");
    // A terminal that closes sends it twice.
    setTimeout(() => child.kill("SIGHUP"), 50);
  };
  const { status, output, errors } = await ended;
  expect(output).toMatch(/== staging: Current version\n\nversion1@100%\n$/);
  expect(errors).toMatch(/\nThe deployment of staging failed. Interrupted by SIGHUP.\n$/);
  expect(status).toBe(129);
});

it("is deployed by Wrangler alone, which says what that leaves out", async () => {
  const { status, output } = await run("npx wrangler deploy --env staging");
  expect(output).toMatch(
    /This is commit [0-9a-f]{7,}-dirty, and callers get it without a test. Migrations are not applied/,
  );
  expect(status).toBe(0);
  expect(cloudflare.traffic).toBe("version2@100%");
});

it.skipIf(WINDOWS)("ends at once at the second Ctrl-C, even if the API hangs", async () => {
  const { server: api, origin: CLOUDFLARE_API_BASE_URL, close } = await startServer();
  const { child, ended } = start("node scripts/deploy/deploy.ts staging", { CLOUDFLARE_API_BASE_URL });
  const interrupt = () => child.pid && process.kill(-child.pid, "SIGINT");
  const [{ socket }] = await once(api, "request");
  // npm can pass on the first one, so that it arrives twice.
  for (const delay of [0, 5, 1000]) setTimeout(interrupt, delay);
  const { status, errors } = await ended;
  // The Wrangler command has ended, too.
  if (!socket.closed) await once(socket, "close");
  close();
  expect(status).toBe(130);
  expect(errors).toBe(`
SIGINT: stopping after the current Wrangler command. Press Ctrl-C again to end at once.

Ended at once. To see what is deployed: npx wrangler deployments status --env staging
If there are two versions: npx wrangler versions deploy <the one at 100%>@100% -y --env staging\n`);
});
