// Deployments with the real Git and Vitest, from a copy of the project. A program that reports each command replaces
// Wrangler, and a server in this test replaces the environments. The copy has two short tests in place of those over
// HTTP. These tests continue each other: each one also shows that nothing before it is in its way.

import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { baseIn } from "../../scripts/deploy.ts";
import { waitUntilServed } from "../../scripts/serving.ts";
import { wrangler } from "../../scripts/wrangler.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { commitAll, git } from "../git.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";

const KEY = "a-key-of-the-operators";

/** What happens, in its order: the commands of Wrangler, and the tests over HTTP. */
let events: string[] = [];
/** The event that fails. */
let failing = /$^/;
/** Called for each event. */
let onEvent = (_event: string): unknown => undefined;
/** The commit that each environment serves. */
let serving: Record<string, string> = {};

const server = await startServer(async (request, response) => {
  const [, environment = "", path = ""] = /^\/(\w+)(\/.*)/.exec(request.url ?? "") ?? [];
  response.setHeader("Worker-Version", "version");
  if (path === "/" && environment in serving) {
    const event = `${environment} is asked`;
    if (events.at(-1) !== event) events.push(event);
    return response.end(`built from commit <code>${serving[environment]}</code>`);
  }
  if (path.startsWith("/v1/pets")) {
    if (request.headers.authorization !== `Bearer ${KEY}`) return response.writeHead(401).end();
    return response.writeHead(200, { "API-Key-Name": "API_KEY" }).end("[]");
  }
  const event = await text(request);
  events.push(event);
  onEvent(event);
  if (failing.test(event)) return response.writeHead(500).end();
  const [, name = "", tag = ""] = /^deploy --env (\w+) --tag (\w+)$/.exec(event) ?? [];
  if (name) serving[name] = tag;
  const targets = ["schedule: 0 3 * * *", `${server.origin}/${name}`];
  return response.end(`${JSON.stringify({ type: "deploy", targets })}\n`);
});

const folder = copyProject();
const place = (file: string, ...lines: string[]) => writeFileSync(join(folder, file), lines.join("\n"));

// The packages are links, which .gitignore does not cover as a folder.
rmSync(join(folder, "node_modules"));
mkdirSync(join(folder, "node_modules/wrangler"), { recursive: true });
for (const name of readdirSync("node_modules")) {
  const [link, target] = [join(folder, "node_modules", name), resolve("node_modules", name)];
  if (name !== "wrangler") symlinkSync(target, link, "junction");
}
place("node_modules/wrangler/package.json", '{ "type": "module", "main": "./wrangler.js" }');
place(
  "node_modules/wrangler/wrangler.js",
  'import { appendFileSync } from "node:fs";',
  'const body = process.argv.slice(2, -2).join(" ");', // without --config
  'const response = await fetch(process.env.EVENTS, { method: "POST", body });',
  "const { WRANGLER_OUTPUT_FILE_PATH: report } = process.env;",
  "if (report) appendFileSync(report, await response.text());",
  'process.exitCode = response.ok && process.env.WRANGLER_WRITE_LOGS === "false" ? 0 : 1;',
);
const reporting = (title: string) => [
  'import { expect, inject, it } from "vitest";',
  'const { origin, key } = inject("service");',
  `const body = \`${title} \${origin.split("/").at(-1)} \${key ? "with a key" : "without a key"}\`;`,
  `it("${title}", async () => {`,
  '  expect((await fetch(process.env.EVENTS, { method: "POST", body })).ok).toBe(true);',
  "});",
];
rmSync(join(folder, "test/end-to-end"), { recursive: true });
mkdirSync(join(folder, "test/end-to-end"));
place("test/end-to-end/deployed-setup.ts", readFileSync("test/end-to-end/deployed-setup.ts", "utf8"));
place("test/end-to-end/smoke.test.ts", ...reporting("smoke test"));
place("test/end-to-end/all.test.ts", ...reporting("all tests"));
git(folder, "init", "--quiet");
const commit = commitAll(folder);

afterAll(() => {
  server.close();
  removeProject(folder);
});

beforeEach(() => {
  [events, failing, onEvent] = [[], /$^/, () => undefined];
  serving = { staging: "0ld", production: "0ld" };
});

/** Runs `npm run deploy`, or the command for one environment. */
async function deploy(environment = "", env: Record<string, string> = {}) {
  const args = ["scripts/deploy.ts", ...(environment ? [environment] : [])];
  const child = launch(process.execPath, args, folder, { EVENTS: `${server.origin}/events/`, API_KEY: KEY, ...env });
  return outcome(child);
}

const commandsFor = (environment: string) => [
  `deployments status --env ${environment}`,
  `d1 time-travel info DB --env ${environment}`,
  `d1 migrations apply DB --env ${environment} --remote`,
  `deploy --env ${environment} --tag ${commit}`,
];
const SMOKE_TEST = "smoke test staging with a key";
const ALL_TESTS = "all tests staging with a key";
const ASKED = "staging is asked"; // which commit it serves
const inStaging = [...commandsFor("staging"), ASKED, SMOKE_TEST, ALL_TESTS, SMOKE_TEST, ASKED];
const inProduction = [...commandsFor("production"), "production is asked", "smoke test production without a key"];
const NEXT = "\nThe page of an environment names the commit that serves there. Correct the cause, and run the same";

describe("npm run deploy", () => {
  it("deploys to staging, runs all tests there, and then deploys to production, without staging's key", async () => {
    const GITHUB_OUTPUT = join(folder, ".git/output");
    const { status, output, errors } = await deploy("", { GITHUB_OUTPUT });
    expect([status, errors]).toEqual([0, expect.not.stringContaining(NEXT)]);
    const urls = ["staging", "production"].map((environment) => `url=${server.origin}/${environment}/v1\n`);
    expect(readFileSync(GITHUB_OUTPUT, "utf8")).toBe(urls.join(""));
    expect(output.endsWith(`\nCommit ${commit} is deployed.\n`)).toBe(true);
    // Vitest runs the files of all tests in any order.
    expect(events.toSpliced(6, 2, ...events.slice(6, 8).sort())).toEqual([...inStaging, ...inProduction]);
  });

  const edit = () => place("README.md", "edited");
  it.each([
    ["what serves is not known", /^deployments/, () => {}, 1],
    ["somebody edits a file", /$^/, (event: string) => /travel/.test(event) && edit(), 2],
    ["a migration fails", /migrations/, () => {}, 3],
    ["somebody edits a file while migrations are applied", /$^/, (event: string) => /apply/.test(event) && edit(), 3],
    ["the commit is not accepted", /^deploy /, () => {}, 4],
  ])("stops if %s", async (_, event, react, count) => {
    [failing, onEvent] = [event, react];
    const { status, errors } = await deploy();
    git(folder, "checkout", "--quiet", ".");
    expect(errors).toContain(NEXT);
    expect(status).toBe(1);
    expect(events).toEqual(inStaging.slice(0, count));
    expect(serving).toEqual({ staging: "0ld", production: "0ld" });
  });

  it.each([
    ["a test fails there", () => (failing = /^all tests/), "The command above failed."],
    ["somebody deploys a different commit", () => (serving["staging"] = "0ther"), "Staging serves 0ther now"],
  ])("leaves production alone if in staging, during its tests, %s", async (_, react, message) => {
    onEvent = (event) => event === ALL_TESTS && react();
    const { status, errors } = await deploy();
    expect(errors).toMatch(RegExp(`${message}[\\s\\S]*${NEXT}`));
    expect(status).toBe(1);
    expect(events).toEqual(expect.arrayContaining(inStaging));
    expect(events.filter((event) => event.includes("production"))).toEqual([]);
  });
});

describe("npm run deploy:<environment>", () => {
  it("deploys to one environment, and fails if the smoke test does", async () => {
    failing = /^smoke/;
    const { status, output, errors } = await deploy("production");
    expect(output).toContain("This commit is not tested in staging first");
    expect([status, errors]).toEqual([1, expect.stringContaining(NEXT)]);
    // Vitest repeats a test that fails.
    expect([...new Set(events)]).toEqual([
      ...commandsFor("production"),
      "production is asked",
      "smoke test production with a key",
    ]);
    expect(serving).toEqual({ staging: "0ld", production: commit });
  });

  it("does not say in the workflow that production gets an untested commit", async () => {
    failing = /^deployments/;
    const { output } = await deploy("production", { GITHUB_OUTPUT: join(folder, ".git/output") });
    expect(output).not.toContain("not tested");
  });

  it("takes nothing but a commit", async () => {
    place("src/new.ts");
    const { status, errors } = await deploy("staging");
    rmSync(join(folder, "src/new.ts"));
    expect(errors).toContain("?? src/new.ts");
    expect([status, events]).toEqual([1, []]);
  });

  it.each([
    ["an unknown environment", "demo", {}, "usage: "],
    ["no key of staging, for its tests", "", { API_KEY: "" }, "The tests in staging need one of its API keys"],
  ])("does nothing with %s", async (_, environment, env, message) => {
    expect(await deploy(environment, env)).toMatchObject({ status: 1, errors: expect.stringContaining(message) });
    expect(events).toEqual([]);
  });
});

it("npm run backup reads the deployed database", async () => {
  const args = ["scripts/backup.ts", "production", "backup.sql"];
  const child = launch(process.execPath, args, folder, { EVENTS: `${server.origin}/events/` });
  expect(await outcome(child)).toMatchObject({ status: 1, output: "" }); // Nothing is answered.
  expect(events).toEqual([expect.stringMatching(/^d1 execute DB --env production --remote --json --command SELECT /)]);
});

it.each([
  [["api.example.com (custom domain)"], "https://api.example.com/v1"],
  [["api.example.com (custom domain - zone id: 1)", "https://a.b.workers.dev"], "https://a.b.workers.dev/v1"],
])("of the targets %j, %j is the address", (targets, base) => expect(baseIn(targets)).toBe(base));

it("fails if Wrangler reports neither an address of workers.dev nor a custom domain", () => {
  const targets = ["schedule: 0 3 * * *", "example.com/* (zone name: example.com)"];
  expect(() => baseIn(targets)).toThrow("Wrangler reports no address");
});

it("waits until five answers in a row are from a Worker whose page names the commit", async () => {
  const pages = ["new", "new", "new", "new", "new-dirty", "new", "new", "new", "new", "new", "unread"];
  let requests = 0;
  const { origin, close } = await startServer(({ url }, response) => {
    if (requests++ > 0) response.setHeader("Worker-Version", "version");
    response.end(url === "/" && `built from commit <code>${pages.shift()}</code>`);
  });
  await waitUntilServed(`${origin}/v1`, "new");
  expect(pages).toEqual(["unread"]);
  const waiting = waitUntilServed(`${origin}/v1`, "0ther", 0);
  await expect(waiting).rejects.toThrow(`${origin}/v1 serves unread, and not commit 0ther.`);
  close();
  await expect(waitUntilServed(`${origin}/v1`, "new", 0)).rejects.toThrow("serves nothing (fetch failed)");
});

it("Wrangler itself knows the flags, writes the report, and keeps the names of the code and of the Worker", () => {
  const WRANGLER_OUTPUT_FILE_PATH = join(folder, "dist/report.jsonl");
  vi.stubEnv("WRANGLER_CI_OVERRIDE_NAME", "other");
  const flags = ["--env", "staging", "--tag", commit, "--dry-run", "--outdir", join(folder, "dist")];
  wrangler(["deploy", ...flags], { env: { WRANGLER_OUTPUT_FILE_PATH, IN_DEPLOYMENT: "true" }, output: "pipe" });
  const [, report = ""] = readFileSync(WRANGLER_OUTPUT_FILE_PATH, "utf8").split("\n");
  expect(JSON.parse(report)).toMatchObject({ type: "deploy", worker_name: "animal-store-staging" });
  expect(readFileSync(join(folder, "dist/index.js"), "utf8")).toMatch(/^(async )?function createPet\(/m);
});
