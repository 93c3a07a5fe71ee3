// A copy of the project that deploys with the real Git and Vitest, but not to Cloudflare: a program that reports each
// command replaces Wrangler, a server in this process replaces the environments, and two short tests that report that
// they ran replace those over HTTP. It starts and ends with the test file that imports this.

import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeEach } from "vitest";
import { copyProject, removeProject } from "../dev-server.ts";
import { commitAll, git } from "../git.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";

const KEY = "a-key-of-the-operators";

/** What a test sees, and what it can change. Before each test, everything works, and both serve the commit 0ld. */
export const cloudflare = {
  /** What has happened: the commands of Wrangler, the tests over HTTP, and the questions which commit is served. */
  events: [] as string[],
  /** The event that fails. */
  failing: /$^/,
  /** Called for each event. */
  onEvent: (_event: string): unknown => undefined,
  /** The commit that each environment serves. */
  serving: {} as Record<string, string>,
};
beforeEach(() => {
  const serving = { staging: "0ld", production: "0ld" };
  Object.assign(cloudflare, { events: [], failing: /$^/, onEvent: () => undefined, serving });
});

/** The environments. Each has its name in its base URL. */
const environments = await startServer(({ url = "", headers }, response) => {
  const [, name = "", path = ""] = /^\/(\w+)(\/.*)/.exec(url) ?? [];
  response.setHeader("Worker-Version", "version");
  if (path === "/") {
    const event = `${name} is asked`;
    if (cloudflare.events.at(-1) !== event) cloudflare.events.push(event);
    return response.end(`built from commit <code>${cloudflare.serving[name]}</code>`);
  }
  if (headers.authorization !== `Bearer ${KEY}`) return response.writeHead(401).end();
  return response.writeHead(200, { "API-Key-Name": "API_KEY" }).end("[]");
});
export const baseOf = (environment: string) => `${environments.origin}/${environment}/v1`;

/** Takes the reports, and answers what Wrangler writes after a deployment. */
const reports = await startServer(async (request, response) => {
  const event = await text(request);
  cloudflare.events.push(event);
  cloudflare.onEvent(event);
  if (cloudflare.failing.test(event)) return response.writeHead(500).end();
  const [, name = "", tag = ""] = /^deploy --env (\w+) --tag (\w+)$/.exec(event) ?? [];
  if (name) cloudflare.serving[name] = tag;
  const targets = ["schedule: 0 3 * * *", `${environments.origin}/${name}`];
  return response.end(`${JSON.stringify({ type: "deploy", targets })}\n`);
});

const FAKE_WRANGLER = `
  import { appendFileSync } from "node:fs";
  const body = process.argv.slice(2, -2).join(" "); // without --config
  const response = await fetch("${reports.origin}", { method: "POST", body });
  const { WRANGLER_OUTPUT_FILE_PATH: report } = process.env;
  if (report) appendFileSync(report, await response.text());
  process.exitCode = response.ok && process.env.WRANGLER_WRITE_LOGS === "false" ? 0 : 1;`;

const fakeTest = (title: string) => `
  import { expect, inject, it } from "vitest";
  const { origin, key } = inject("service");
  const body = \`${title} \${origin.split("/").at(-1)} \${key ? "with a key" : "without a key"}\`;
  it("${title}", async () => {
    expect((await fetch("${reports.origin}", { method: "POST", body })).ok).toBe(true);
  });`;

export const folder = copyProject();
export const place = (file: string, content = "") => writeFileSync(join(folder, file), content);

// The packages are links, which .gitignore does not cover as a folder.
rmSync(join(folder, "node_modules"));
mkdirSync(join(folder, "node_modules/wrangler"), { recursive: true });
for (const name of readdirSync("node_modules")) {
  const [link, target] = [join(folder, "node_modules", name), resolve("node_modules", name)];
  if (name !== "wrangler") symlinkSync(target, link, "junction");
}
place("node_modules/wrangler/package.json", '{ "type": "module", "main": "./wrangler.js" }');
place("node_modules/wrangler/wrangler.js", FAKE_WRANGLER);
rmSync(join(folder, "test/end-to-end"), { recursive: true });
mkdirSync(join(folder, "test/end-to-end"));
place("test/end-to-end/deployed-setup.ts", readFileSync("test/end-to-end/deployed-setup.ts", "utf8"));
place("test/end-to-end/smoke.test.ts", fakeTest("smoke test"));
place("test/end-to-end/all.test.ts", fakeTest("all tests"));
git(folder, "init", "--quiet");
export const commit = commitAll(folder);

afterAll(() => {
  environments.close();
  reports.close();
  removeProject(folder);
});

/** Runs a program of scripts/ there. */
export const runScript = (args: string[], env: NodeJS.Dict<string> = {}) =>
  outcome(launch(process.execPath, args, folder, { API_KEY: KEY, ...env }));

/** Runs `npm run deploy`, or the command for one environment. */
export const deploy = (environment = "", env: NodeJS.Dict<string> = {}) =>
  runScript(["scripts/deploy.ts", ...(environment ? [environment] : [])], env);
