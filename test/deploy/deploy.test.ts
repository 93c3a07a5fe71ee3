// Staging with the real Wrangler, from nothing to a first deployment, one that adds a key, one whose terminal closes after its
// version serves, and a plain `wrangler deploy`.
// What a deployment decides is in deployment.test.ts.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { copyProject, removeProject } from "../end-to-end/dev-server.ts";
import { launch, outcome } from "../processes.ts";
import { startCloudflare } from "./cloudflare.ts";

const WORKER = "animal-store-staging";
const cloudflare = await startCloudflare();
const { base } = cloudflare;
const folder = copyProject();
afterAll(async () => {
  await cloudflare[Symbol.asyncDispose]();
  removeProject(folder);
});

/** Starts a command in the folder, with the account. Wrangler is large, so what is compiled of it is kept. */
function start(command: string, env: NodeJS.Dict<string> = {}) {
  const cache = join(tmpdir(), "animal-store-compile-cache");
  const own = { API_KEY: undefined, SMOKE_URL: base, XDG_CONFIG_HOME: folder, NODE_COMPILE_CACHE: cache };
  const [program = "", ...args] = command.split(" ");
  const child = launch(program, args, folder, { ...own, ...cloudflare.env, ...env });
  return { child, ended: outcome(child) };
}
const run = (command: string, env?: NodeJS.Dict<string>) => start(command, env).ended;

const write = (file: string, content: string) => writeFileSync(join(folder, file), content);
const list = (key: string) => fetch(`${base}/pets?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
const statusWith = async (key: string) => (await list(key)).status;

// Wrangler reads this file too, and nothing in it may reach an environment.
write(".env", "API_KEY=local\n");
write("staging.env", "API_KEY=one\n");

/** The key that the first deployment prints. */
let first = "";

it("is not deployed by Wrangler alone before its database exists", async () => {
  const [{ status, output }, dryRun] = await Promise.all([
    run("npx wrangler deploy --env staging --secrets-file staging.env"),
    run("npx wrangler deploy --dry-run --env staging", { CLOUDFLARE_API_TOKEN: undefined }),
  ]);
  expect(
    output,
  ).toContain(`The database ${WORKER} does not exist. Create it first, because its location cannot be changed later:
[custom build] see "With Wrangler alone" in docs/OPERATIONS.md.
[custom build] Nothing was deployed. Wrangler now reports a failed build: ignore the 100 lines that follow.`);
  expect([status, dryRun.status]).toEqual([1, 0]);
  expect(cloudflare.requests.filter((request) => !request.startsWith("GET "))).toEqual([]);
});

it("is deployed the first time: the database at the given location, its migrations, the Worker with a new key", async () => {
  removeProject(join(folder, ".wrangler"));
  const { status, output } = await run("npm run deploy:staging -- --new-key --location weur");
  [, first = ""] = /^New key: (\S+)$/m.exec(output) ?? [];
  const [version] = cloudflare.versions;
  expect(output.trim()).toMatch(RegExp(`${WORKER}: version ${version?.id} serves all requests, at ${base}\\.$`));
  // Wrangler's advice, which must not be followed, and what the build says to those who deploy without this command.
  expect(output).not.toMatch(/add the following snippet|does not apply migrations/);
  expect(status).toBe(0);
  expect(cloudflare.databases).toMatchObject([{ name: WORKER, primary_location_hint: "weur" }]);
  const applied = await cloudflare.query("SELECT name FROM d1_migrations ORDER BY id");
  expect(applied.map(({ name }) => name)).toEqual(readdirSync(join(folder, "migrations")).sort());
  expect([await statusWith(first), await statusWith("local")]).toEqual([200, 401]);
  expect(version?.annotations).toEqual({ "workers/tag": "no-commit", "workers/message": "[new keys: 1] no commit" });
  // The names and lines of a stack in the log are those of the source.
  expect(/^(async )?function createPet\(/m.test(Object.values(version?.modules ?? {}).join("\n"))).toBe(true);
  // Wrangler would keep a copy of what it prints.
  expect(existsSync(join(folder, ".wrangler/logs"))).toBe(false);
});

it("gets a new key without a rejected request", async () => {
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  const git = (...args: string[]) => execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" });
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", 'pets: say "more"');
  write("migrations/9999_untracked.sql", "SELECT 1;");
  const seen = new Set<string>();
  let isDeploying = true;
  const caller = async () => {
    while (isDeploying) {
      const { status, headers } = await list(first);
      seen.add(`${status} ${headers.get("Worker-Version")}`);
    }
  };
  const calls = caller();
  const before = cloudflare.versions[0]?.id;
  const env = { API_KEY: `${first},two`, SMOKE_URL: `${base}/` };
  const { status, output } = await run("npm run deploy:staging -- --set-keys", env);
  isDeploying = false;
  await calls;
  const [version] = cloudflare.versions;
  expect(output.trim()).toMatch(RegExp(`${WORKER}: version ${version?.id} serves all requests, at ${base}\\.$`));
  // Wrangler's advice, which would skip the smoke test.
  expect(output).not.toMatch(/triggers deploy|to production traffic/);
  expect(status).toBe(0);
  expect(cloudflare.serving).toEqual([{ version_id: version?.id, percentage: 100 }]);
  expect([...seen]).toEqual([`200 ${before}`, `200 ${version?.id}`]);
  expect(await Promise.all([first, "two", "local"].map(statusWith))).toEqual([200, 200, 401]);
  expect(version?.annotations).toEqual({
    "workers/tag": `${git("rev-parse", "--short", "HEAD").trim()}-dirty`,
    "workers/message": '[new keys: 2] pets: say "more"',
  });
  expect(await cloudflare.query("SELECT count(*) AS animals FROM pets")).toEqual([{ animals: 1 }]);
});

// On Windows, one process cannot send a signal to another.
it.skipIf(process.platform === "win32")(
  "gets its traffic back from a version with other keys, if the terminal closes",
  async () => {
    const [before] = cloudflare.versions;
    const env = { API_KEY: "two,three" };
    const { child, ended } = start("node scripts/deploy/deploy.ts staging --set-keys", env);
    cloudflare.onDeployment = () => {
      if (cloudflare.serving[0]?.version_id === before?.id) return;
      cloudflare.onDeployment = () => {};
      // A terminal that closes sends it twice.
      for (const delay of [0, 50]) setTimeout(() => child.kill("SIGHUP"), delay);
    };
    const { status, errors } = await ended;
    expect(errors.trim()).toMatch(
      RegExp(`Traffic: ${before?.id}@100%\\. .*\n\n.*\nAPI_KEY=… npm run deploy:staging -- --set-keys$`),
    );
    expect(status).toBe(129);
    expect(cloudflare.serving).toEqual([{ version_id: before?.id, percentage: 100 }]);
    expect(await Promise.all([first, "three"].map(statusWith))).toEqual([200, 401]);
  },
);

it("is deployed by Wrangler alone, which says what that leaves out", async () => {
  const { status, output } = await run("npx wrangler deploy --env staging");
  expect(output).toContain("This does not apply migrations or run the smoke test. npm run deploy:staging does both");
  expect(status).toBe(0);
  expect(cloudflare.serving).toEqual([{ version_id: cloudflare.versions[0]?.id, percentage: 100 }]);
  expect(await statusWith("two")).toBe(200);
});

it.skipIf(process.platform === "win32")("a second Ctrl-C ends a deployment whose API hangs", async () => {
  const api = createServer().listen(0, "127.0.0.1");
  await once(api, "listening");
  const address = api.address();
  const CLOUDFLARE_API_BASE_URL = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const { child, ended } = start("node scripts/deploy/deploy.ts staging", { CLOUDFLARE_API_BASE_URL, API_KEY: "one" });
  const interrupt = () => child.pid && process.kill(-child.pid, "SIGINT");
  const [{ socket }] = await once(api, "request");
  interrupt();
  await once(child.stderr, "readable");
  interrupt();
  const { status, errors } = await ended;
  // The Wrangler command has ended, too.
  if (!socket.closed) await once(socket, "close");
  api.close();
  expect(status).toBe(130);
  expect(errors).toBe(`
SIGINT: stopping after the current Wrangler command. Press Ctrl-C again to end at once.

SIGINT: ended at once. The last step above may be unfinished.
To see which version serves: npx wrangler deployments status --env staging\n`);
});
