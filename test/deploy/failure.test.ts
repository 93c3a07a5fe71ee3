// Production, first deployed by Wrangler alone, where deployments then fail in every way: no caller notices, and the last
// line says what serves.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { callers, startOperator } from "./operator.ts";

const WORKER = "animal-store-production";
const operator = await startOperator("production", WORKER);
const { cloudflare, base } = operator;
afterAll(() => operator[Symbol.asyncDispose]());

const KEY = { API_KEY: "key" };
const INDEX = readFileSync(join(operator.folder, "src/index.ts"), "utf8");

const wrangler = (...args: string[]) => operator.run("npx", ["wrangler", ...args]);

let version = "";
it("is not deployed by Wrangler alone before its database exists, and then is", async () => {
  operator.write("production.env", "API_KEY=key,next\n");
  const deploy = ["deploy", "--env", "production", "--secrets-file", "production.env"];
  const { status, output } = await wrangler(...deploy);
  expect(
    output,
  ).toContain(`The database ${WORKER} does not exist. Create it first, because its location cannot be changed later:
[custom build] npx wrangler d1 create ${WORKER} --location=<hint>, or --jurisdiction=<name>
[custom build] npx wrangler d1 migrations apply DB --env production --remote
[custom build] Nothing was deployed. Wrangler now reports a failed build: ignore the 100 lines that follow.`);
  expect(status).toBe(1);
  expect([...cloudflare.databases, ...cloudflare.workers]).toEqual([]);

  expect(await wrangler("d1", "create", WORKER, "--jurisdiction=eu")).toMatchObject({ status: 0 });
  expect(await wrangler("d1", "migrations", "apply", "DB", "--env", "production", "--remote")).toMatchObject({
    status: 0,
  });
  expect(await wrangler(...deploy)).toMatchObject({ status: 0 });
  expect(cloudflare.databases.get(WORKER)).toMatchObject({ jurisdiction: "eu" });
  version = operator.serving()?.[0]?.version_id ?? "";
  await expect.poll(() => operator.statusWith("key")).toBe(200);
});

/** What every failed deployment leaves behind. */
async function unchanged(output: string, seen: { stop(): ReturnType<ReturnType<typeof callers>["stop"]> }) {
  expect(output.trim().split("\n").at(-1)).toMatch(
    RegExp(`^${WORKER}: version ${version} serves 100% of the requests; `),
  );
  expect(operator.serving()).toEqual([{ version_id: version, percentage: 100 }]);
  expect(await seen.stop()).toEqual([{ status: 200, version }]);
}

it("keeps callers away from a version that fails the smoke test", async () => {
  const broken = "env = { ...env, DB: { ...env.DB } as D1Database };";
  operator.write("src/index.ts", INDEX.replace(/(async function fetch\(.*\n)/, `$1  ${broken}\n`));
  const seen = callers(base, "key");
  const { status, output } = await operator.deploy([], KEY);
  operator.write("src/index.ts", INDEX);
  expect(status).toBe(1);
  expect(output).toMatch(/POST \/pets: expected 201 .*, got 500: /);
  await unchanged(output, seen);
});

it("keeps callers away from a version that cannot be tested, because the version override is ignored", async () => {
  cloudflare.edge.overrides = false;
  const seen = callers(base, "key");
  const { status, output } = await operator.deploy(["--wait", "1"], KEY);
  cloudflare.edge.overrides = true;
  expect(status).toBe(1);
  expect(output).toContain("The version override was ignored for 1 s.");
  expect(output).toContain("npx wrangler deploy --env production");
  await unchanged(output, seen);
});

it("then deploys, and replaces a key without a rejected request", async () => {
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", 'pets: say "more"');
  operator.write("README.md", "Changed and not committed.");
  operator.write("production.json", '{"API_KEY": "next,new"}');
  const seen = callers(base, "next");
  const env = { API_KEY: "other", SMOKE_URL: `${base}/` };
  const { status, output } = await operator.deploy(["--secrets-file", "production.json"], env);
  const [serving, ...others] = operator.serving() ?? [];
  expect(output.trim()).toMatch(
    RegExp(`${WORKER}: version ${serving?.version_id} serves all requests, at ${base}\\.$`),
  );
  // Wrangler's advice, which would skip the smoke test.
  expect(output).not.toMatch(/triggers deploy|versions deploy/);
  expect(status).toBe(0);
  expect(others).toEqual([]);
  expect(serving?.version_id).not.toBe(version);
  expect((await seen.stop()).map(({ status }) => status)).toEqual([200, 200]);
  const keys = ["key", "next", "new", "other"];
  expect(await Promise.all(keys.map(operator.statusWith))).toEqual([401, 200, 200, 401]);
  expect(cloudflare.workers.get(WORKER)?.versions[0]?.annotations).toEqual({
    "workers/tag": `${git("rev-parse", "--short", "HEAD")}-dirty`,
    "workers/message": '[new keys] pets: say "more"',
  });
  expect(await cloudflare.query(WORKER, "SELECT count(*) AS animals FROM pets")).toEqual([{ animals: 1 }]);
});

function git(...args: string[]): string {
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  return execFileSync("git", [...identity, ...args], { cwd: operator.folder, encoding: "utf8" }).trim();
}
