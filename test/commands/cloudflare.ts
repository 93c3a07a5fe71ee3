// A copy of the project that deploys with the real Git, tar, Wrangler and Vitest, to a server that is both Cloudflare's
// API and the environments. One test that reports that it ran replaces those over HTTP, and a script npm, which links
// the packages of this project. It starts and ends with the one test file that imports this: a second one in the same
// process would get what Vitest has imported already.

import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterAll, beforeEach } from "vitest";
import { CHALLENGE } from "../../src/http/authentication.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { commitAll, git } from "../git.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { TABLES } from "../tables.ts";

const atFirst = () => ({
  /** What has happened, in order. What an environment is asked several times in a row is here once. */
  events: [] as string[],
  /** Called for each event, which fails if this returns true. */
  fails: (_event: string): boolean => false,
  /** The commit that each environment serves. */
  serving: { staging: "ea411e4ea411", production: "ea411e4ea411" } as Record<string, string | undefined>,
  /** What was uploaded last: a form with the metadata, the script and its source map. */
  upload: "",
  /** The accounts that were named. */
  accounts: new Set<string>(),
  /** Whether both services are closed. */
  isClosed: false,
  /** The database of each environment that has one. */
  stores: { staging: openStore(), production: openStore() } as Record<string, DatabaseSync>,
  /** The API_KEY of each environment. One without a key has no Worker. */
  keys: { staging: "a-key", production: "a-key" } as Record<string, string>,
});

/**
 * What a test sees, and what it can change. Before each test, everything works, both environments serve an earlier
 * commit with the tables of this one, and the folder is a fresh clone, which has deployed to neither.
 */
export const cloudflare = atFirst();
beforeEach(() => {
  Object.assign(cloudflare, atFirst());
  git(folder, "reset", "--quiet", "--hard", commit);
  git(folder, "clean", "-dfxq", "--exclude=node_modules");
  mkdirSync(join(folder, ".wrangler"));
});

/** A database to which Wrangler has applied the migrations. */
function openStore(): DatabaseSync {
  const store = new DatabaseSync(":memory:");
  store.exec(`${TABLES} CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)`);
  for (const name of readdirSync("migrations")) store.prepare("INSERT INTO d1_migrations (name) VALUES (?)").run(name);
  return store;
}

/** Records an event. Returns whether it succeeds. */
function record(event: string): boolean {
  const [environment = ""] = event.split(" ");
  const last = cloudflare.events.findLast((earlier) => earlier.startsWith(environment));
  if (last !== event) cloudflare.events.push(event);
  return !cloudflare.fails(event);
}

/** What a request to the API means. */
const API_EVENTS: [request: RegExp, event: string][] = [
  [/time_travel/, "bookmark"],
  [/\/query$/, "query"],
  [/\/import$/, "import"],
  [/^POST .*\/versions/, "upload"],
  [/^POST .*\/deployments$/, "live"],
  [/^GET .*\/database\?per_page/, "databases"],
  [/^POST .*\/database$/, "new database"],
  [/^GET .*\/secrets$/, "secrets"],
  [/^PUT .*\/secrets$/, "new key"],
];

/** The code with which Cloudflare refuses a binding to a database that does not exist, and secrets without a Worker. */
function refusalOf(event: string, environment: string, body: string): number | undefined {
  if (!record(`${environment}: ${event}`)) return 7500;
  if (event === "upload" && !body.includes(`"type":"d1","id":"animal-store-${environment}"`)) return 10021;
  return event === "secrets" && !cloudflare.keys[environment] ? 10007 : undefined;
}

/** Does what a request means, and returns the result. */
function resultOf(event: string, environment: string, body: string): object {
  if (event === "query") {
    const { sql } = JSON.parse(body);
    const store = cloudflare.stores[environment];
    const results = /^\s*SELECT/i.test(sql) ? store?.prepare(sql).all() : store?.exec(sql);
    return [{ success: true, meta: {}, results: results ?? [] }];
  }
  if (event === "databases") return Object.keys(cloudflare.stores).map((name) => ({ name: `animal-store-${name}` }));
  if (event === "secrets") return [{ name: "API_KEY" }];
  if (event === "new database") cloudflare.stores[environment] = openStore();
  if (event === "new key") cloudflare.keys[environment] = JSON.parse(body).text;
  if (event === "upload") cloudflare.upload = body;
  const [, commit] = /\[VERSION_HEADER\]: .*?"(\w+)",?$/m.exec(cloudflare.upload) ?? [];
  if (event === "live") cloudflare.serving[environment] = commit;
  return defaultResult(`animal-store-${environment}`, body);
}

/** Satisfies every command of Wrangler, of which each reads some of the members. An import ends when it is polled. */
const defaultResult = (database: string, body: string) => ({
  bindings: [],
  bookmark: "a-bookmark",
  buckets: [],
  default_environment: { script: { last_deployed_from: "wrangler" } },
  deployments: [],
  jwt: "jwt",
  messages: [],
  name: database,
  resources: { script: {}, script_runtime: {} },
  result: { meta: { duration: 0, size_after: 0 } },
  status: body.includes('"poll"') ? "complete" : "active",
  subdomain: "acme",
  success: true,
  upload_url: `${origin}/${database}`,
  uuid: database,
});

const { origin, close } = await startServer(async (request, response) => {
  const { method, url = "", headers } = request;
  const body = await text(request);
  const [, environment = ""] = /animal-store-(staging|production)/.exec(url + body) ?? [];
  const [, path] = /^\/client\/v4(\/.*)/.exec(url) ?? [];
  if (path) {
    const [, account] = /^\/accounts\/([^/]+)/.exec(path) ?? [];
    if (account) cloudflare.accounts.add(account);
    const [, event] = API_EVENTS.find(([pattern]) => pattern.test(`${method} ${path}`)) ?? [];
    const isMissing = path.includes("/d1/database/") && !cloudflare.stores[environment];
    const code = isMissing ? 7404 : event && refusalOf(event, environment, body);
    const answer = code
      ? { success: false, errors: [{ code, message: "as the test wants" }] }
      : { success: true, errors: [], messages: [], result: resultOf(event ?? "", environment, body) };
    return response.writeHead(isMissing ? 404 : code ? 400 : 200).end(JSON.stringify(answer));
  }
  if (method === "PUT") {
    cloudflare.stores[environment]?.exec(body);
    // Wrangler compares this.
    return response.setHeader("ETag", createHash("md5").update(body).digest("hex")).end();
  }
  if (method === "POST") return response.writeHead(record(body) ? 200 : 500).end();
  response.setHeader("Worker-Version", String(cloudflare.serving[environment]));
  if (cloudflare.serving[environment] === "broken") return response.writeHead(500).end();
  const key = headers.authorization;
  if (record(`${environment}: which ${key ? "key" : "commit"}?`) && key)
    return response.writeHead(cloudflare.isClosed ? 503 : 200, { "API-Key-Name": "API_KEY" }).end('{"code":"closed"}');
  return response.writeHead(401, { "WWW-Authenticate": CHALLENGE }).end();
});

/** Sends requests to this server instead of the addresses that Wrangler reports. */
const REDIRECT_FETCH = `
  const { fetch } = globalThis;
  const redirected = (url) => String(url).replace(/^https:..(.*).acme.workers.dev/, "${origin}/$1");
  globalThis.fetch = (url, init) => fetch(redirected(url), init);`;

const REPORTING_TEST = `
  import { expect, inject, it } from "vitest";
  const { origin, key } = inject("service");
  const [, environment] = /animal-store-(\\w+)/.exec(origin);
  const account = Object.keys(process.env).filter((name) => /^(CLOUDFLARE|CF)_/.test(name));
  it("reports", async () => {
    const body = \`\${environment}: tests in mode \${import.meta.env.MODE} with \${[key, ...account]}\`;
    expect((await fetch("${origin}", { method: "POST", body })).ok).toBe(true);
  });
  it.skip("is skipped (SKIPPED: for a reason)", () => {});`;

const NPM = `
  import { symlinkSync } from "node:fs";
  const body = \`npm: \${process.argv.slice(2).join(" ")}\`;
  if (!(await fetch("${origin}", { method: "POST", body })).ok) process.exit(1);
  symlinkSync(${JSON.stringify(resolve("node_modules"))}, "node_modules", "junction");`;

// Instead of the page, which nothing here needs. The build must not have the account.
const SITE = `
  import { mkdirSync } from "node:fs";
  export const buildSite = () => mkdirSync("dist/site", { recursive: true });
  if (Object.keys(process.env).some((name) => /^(CLOUDFLARE_|CF_|API_KEY$)/.test(name))) process.exit(1);`;

export const folder = copyProject();
export const place = (file: string, content = "") => writeFileSync(join(folder, file), content);

/** Replaces a part of a file. Throws if the file does not have it. */
export function edit(file: string, part: string | RegExp, replacement: string): void {
  const text = readFileSync(join(folder, file), "utf8");
  if (text.search(part) < 0) throw new Error(`${file} does not have ${part}.`);
  place(file, text.replace(part, replacement));
}

// Where programs make temporary files, and where npm is.
const temporary = mkdtempSync(join(tmpdir(), "animal-store-"));
writeFileSync(join(temporary, "npm"), '#!/bin/sh\nexec node "$0.mjs" "$@"\n', { mode: 0o755 });
writeFileSync(join(temporary, "npm.cmd"), '@node "%~dp0npm.mjs" %*\r\n');
writeFileSync(join(temporary, "npm.mjs"), NPM);

for (const file of globSync("test/end-to-end/*.test.ts", { cwd: folder })) rmSync(join(folder, file));
place("test/end-to-end/smoke.test.ts", REPORTING_TEST);
place("redirect-fetch.mjs", REDIRECT_FETCH);
place("scripts/build/site.ts", SITE);
// A second instead of three minutes.
edit("scripts/wait-for-commit.ts", /(?<=PATIENCE = )[\d_]+/, "1_000");
git(folder, "init", "--quiet");
place(".git/info/exclude", "node_modules\n"); // In .gitignore, it is a folder, and here a link.
export const commit = commitAll(folder);

afterAll(() => {
  close();
  removeProject(folder);
  removeProject(temporary);
});

/** The copies of commits that are still there. */
export const copies = () => globSync(".cache/animal-store-*", { cwd: temporary });

/** Where Wrangler would write what it prints. */
export const LOGS = join(folder, ".wrangler/logs");

/** The environment of its programs, with an account and a token that are valid nowhere. */
export const ENV = {
  API_KEY: "key-of-staging",
  CLOUDFLARE_ACCOUNT_ID: "none",
  CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
  CLOUDFLARE_API_KEY: "none",
  CLOUDFLARE_API_TOKEN: "none",
  CLOUDFLARE_EMAIL: "none",
  NODE_OPTIONS: `--import ${pathToFileURL(join(folder, "redirect-fetch.mjs"))}`,
  PATH: `${temporary}${delimiter}${process.env["PATH"]}`,
  HOME: temporary,
  USERPROFILE: temporary,
  WRANGLER_CI_OVERRIDE_NAME: "a-different-worker",
  WRANGLER_LOG_PATH: LOGS,
};

/** Lets the folder have deployed to an environment. Returns the file that says so. */
export function haveDeployed(environment: string): string {
  const targets = [`https://animal-store-${environment}.acme.workers.dev`];
  place(`.wrangler/deployment-${environment}.jsonl`, JSON.stringify({ type: "deploy", targets }));
  return join(folder, `.wrangler/deployment-${environment}.jsonl`);
}

/** Runs a program of scripts/ there. */
export const runScript = (args: string[], env: NodeJS.Dict<string> = {}) =>
  outcome(launch(process.execPath, args, folder, { ...ENV, ...env }));
