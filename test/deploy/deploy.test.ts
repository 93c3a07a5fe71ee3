// Deployments with the real Wrangler and the real Git, from a copy of the project to a simulated account. The copy has
// other tests in place of those over HTTP, which the account cannot pass. Each deployment takes seconds, so these tests
// continue each other: every one also shows that nothing before it is in its way.

import { execFileSync } from "node:child_process";
import { globSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startCloudflare } from "../cloudflare.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";

const WINDOWS = process.platform === "win32";
const [STAGING, PRODUCTION] = ["animal-store-staging", "animal-store-production"];
const KEY = "a-key-of-the-operators";

const folder = copyProject();
const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
const git = (...args: string[]) => {
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" }).trim();
};
const head = () => git("rev-parse", "--short", "HEAD");
const commit = () => {
  git("add", "--all");
  git("commit", "--quiet", "--message", "a commit");
};

for (const file of globSync("test/end-to-end/*.test.ts", { cwd: folder })) rmSync(join(folder, file));
write("test/end-to-end/smoke.test.ts", 'import { it } from "vitest";\nit("is not tested again here", () => {});\n');
write(
  "test/end-to-end/all.test.ts",
  `import { it } from "vitest";
import { ORIGIN } from "./service.ts";
it("asks the service", () => fetch(ORIGIN + "/v1/tested"));
`,
);
git("init", "--quiet");
// The packages are a link here, which .gitignore does not cover.
write(".git/info/exclude", "node_modules\n");
commit();

const cloudflare = await startCloudflare();
for (const name of [STAGING, PRODUCTION]) {
  cloudflare.create(name);
  cloudflare.setSecrets(name, { API_KEY: KEY });
}
afterAll(async () => {
  await cloudflare[Symbol.asyncDispose]();
  removeProject(folder);
});

beforeEach(() => {
  cloudflare.onRequest = () => {};
  cloudflare.requests = [];
});

/** Starts `npm run deploy`, or for one environment, with the account. */
function start(environment = "", env: Record<string, string> = {}) {
  const args = ["scripts/deploy.ts", ...(environment ? [environment] : [])];
  const child = launch(process.execPath, args, folder, { ...cloudflare.env, API_KEY: KEY, ...env });
  return { child, ended: outcome(child) };
}
const deploy = async (environment?: string, env?: Record<string, string>) => start(environment, env).ended;

/** What is asked about or sent to an environment. */
const requestsFor = (name: string) => cloudflare.requests.filter((request) => request.includes(name));

/** Reacts to the first request that matches. */
function once(pattern: RegExp, react: () => unknown): void {
  cloudflare.onRequest = (request) => {
    if (!pattern.test(request)) return undefined;
    cloudflare.onRequest = () => {};
    return react();
  };
}

it("refuses a folder that is not a commit, before it sends anything", async () => {
  write("src/new.ts", "");
  const { status, errors } = await deploy();
  rmSync(join(folder, "src/new.ts"));
  expect(errors).toMatch(/\?\? src\/new\.ts[\s\S]+Nothing has changed\./);
  expect(status).toBe(1);
  expect(cloudflare.requests).toEqual([]);
});

// On Windows, one process cannot send a signal to another.
describe.skipIf(WINDOWS)("a signal", () => {
  it.each([
    ["at once, before anything has changed", /GET .*\/deployments$/, "Nothing has changed."],
    ["at once, while migrations are applied", /POST \/d1\/.*\/query$/, "the version before still serves"],
    ["after Wrangler has put the version live", /POST .*\/deployments$/, "was deployed"],
  ])("ends a deployment %s, and says what callers have", async (_, moment, ending) => {
    const before = cloudflare.live[STAGING];
    const { child, ended } = start("staging");
    once(moment, () => {
      // A terminal and npm both send it.
      for (const delay of [0, 5]) setTimeout(() => child.kill("SIGINT"), delay);
      return new Promise((done) => setTimeout(done, 500));
    });
    const { status, output, errors } = await ended;
    expect(errors).toMatch(/\nSIGINT has ended the deployment\. /);
    expect(errors).toContain(ending);
    expect(output).not.toContain("is deployed");
    expect(status).toBe(130);
    expect(cloudflare.live[STAGING] !== before).toBe(ending === "was deployed");
  });

  it("ends a deployment to an address that is not the environment's, which does not pass", async () => {
    const paths: string[] = [];
    const { origin, close } = await startServer((request, response) => {
      paths.push(request.url ?? "");
      if (paths.length === 2) child.kill("SIGTERM");
      response.writeHead(401, { "Worker-Version": "00000000-0000-4000-8000-000000000000" }).end();
    });
    const { child, ended } = start("staging", { SMOKE_URL: `${origin}/v1` });
    const { status, errors } = await ended;
    close();
    expect(paths).toEqual(Array(2).fill("/v1/pets"));
    expect(errors).toMatch(/^\nSIGTERM has ended the deployment\. Commit \w+ was deployed/m);
    expect(status).toBe(143);
  });

  it("ends the tests in staging, and then the deployment", async () => {
    const { child, ended } = start();
    once(/\/v1\/tested$/, () => child.kill("SIGTERM"));
    const { status, errors } = await ended;
    expect(errors).toMatch(/\nSIGTERM has ended the deployment\. .+ Production has not been touched\.\n.+\n$/);
    expect(status).toBe(143);
    expect(requestsFor(PRODUCTION)).toEqual([]);
  });
});

it("leaves the version before serving if a migration fails", async () => {
  const before = cloudflare.live[STAGING];
  write("migrations/9999_new.sql", "CREATE TABLE toys (id INTEGER PRIMARY KEY, FOREIGN);\n");
  commit();
  const { status, errors } = await deploy("staging");
  expect(errors).toContain("the version before still serves");
  expect(status).toBe(1);
  expect(cloudflare.live[STAGING]).toBe(before);
  write("migrations/9999_new.sql", "CREATE TABLE toys (id INTEGER PRIMARY KEY);\n");
  commit();
});

it("does not say that its commit serves if a different deployment was faster", async () => {
  once(/GET animal-store-staging\/v1\/pets$/, () => {
    cloudflare.setSecrets(STAGING, { API_KEY: KEY });
    Object.assign(cloudflare.live[STAGING] ?? {}, { commit: "0ther" });
  });
  const { status, output, errors } = await deploy("staging");
  expect(errors).toContain("commit 0ther serves now");
  expect(output).not.toContain("is deployed");
  expect(status).toBe(1);
});

describe("npm run deploy", () => {
  it("touches nothing in production if somebody deploys a different commit to staging while it is tested", async () => {
    once(/\/v1\/tested$/, () => Object.assign(cloudflare.live[STAGING] ?? {}, { commit: "0ther" }));
    const { status, errors } = await deploy();
    expect(errors).toMatch(/commit 0ther now, which was not tested[\s\S]+Production has not been touched\./);
    expect(status).toBe(1);
    expect(requestsFor(PRODUCTION)).toEqual([]);
  });

  it("touches nothing in production if staging is closed, which, like changed keys, a deployment keeps", async () => {
    const changed = { API_KEY: KEY, API_KEY_SHOP: "new", MAINTENANCE: "" };
    cloudflare.setSecrets(STAGING, { API_KEY: KEY, MAINTENANCE: "" });
    once(/GET animal-store-staging\/v1\/pets$/, () => cloudflare.setSecrets(STAGING, changed));
    const { status, output } = await deploy();
    expect(output).toMatch(/== staging: smoke test[\s\S]+The service is closed[\s\S]+== staging: all tests/);
    expect(status).toBe(1);
    expect(requestsFor(PRODUCTION)).toEqual([]);
    expect(cloudflare.live[STAGING]?.secrets).toEqual(changed);
    cloudflare.setSecrets(STAGING, { API_KEY: KEY });
  });

  it("deploys a commit and its migrations to staging, where all tests pass, and then to production", async () => {
    const { status, errors } = await deploy();
    expect([status, errors]).toEqual([0, expect.not.stringContaining("failed")]);
    const tested = cloudflare.requests.indexOf(`GET ${STAGING}/v1/tested`);
    expect(tested).toBeGreaterThan(0);
    expect(cloudflare.requests.findIndex((request) => request.includes(PRODUCTION))).toBeGreaterThan(tested);
    for (const name of [STAGING, PRODUCTION]) {
      expect(cloudflare.live[name]).toMatchObject({ commit: head(), secrets: { API_KEY: KEY } });
      expect(cloudflare.databases[name]?.prepare("SELECT * FROM pets, toys").all()).toEqual([]);
    }
    // The names and lines of a stack in the log are those of the source.
    expect(cloudflare.live[PRODUCTION]?.modules).toMatch(/^(async )?function createPet\(/m);
  });
});
