// Production, where deployments fail in every way there is: no caller notices one, and the last line says what serves.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callers, startOperator } from "./operator.ts";

const WORKER = "animal-store-production";
const operator = await startOperator("production", WORKER);
const { cloudflare, base } = operator;
afterAll(() => operator[Symbol.asyncDispose]());

const KEY = { API_KEY: "key" };
const INDEX = readFileSync(join(operator.folder, "src/index.ts"), "utf8");

let version = "";
beforeAll(async () => {
  operator.write("production.env", "API_KEY=key\n");
  expect(await operator.deploy(["--secrets-file", "production.env"])).toMatchObject({ status: 0 });
  version = operator.serving()?.[0]?.version_id ?? "";
});

/** What every failed deployment leaves behind. */
async function unchanged(output: string, seen: { stop(): ReturnType<ReturnType<typeof callers>["stop"]> }) {
  expect(output.trim().split("\n").at(-1)).toMatch(RegExp(`^${WORKER}: version ${version} serves, alone; `));
  expect(operator.serving()).toEqual([{ version_id: version, percentage: 100 }]);
  expect(await seen.stop()).toEqual([{ status: 200, version }]);
}

it.each([
  [
    "answers 500 to all",
    'return new Response("broken", { status: 500, headers: { [VERSION_HEADER]: env.VERSION.id } });',
    "answers a request without a key with 500 in place of 401.",
  ],
  [
    "answers 500 to callers with a key",
    "env = { ...env, DB: { ...env.DB } as D1Database };",
    "201 was expected, and 500 answered",
  ],
])("lets no caller meet a version that %s", async (_, statement, message) => {
  operator.write("src/index.ts", INDEX.replace(/(async function fetch\(.*\n)/, `$1  ${statement}\n`));
  const seen = callers(base, "key");
  const { status, output } = await operator.deploy([], KEY);
  operator.write("src/index.ts", INDEX);
  expect(status).toBe(1);
  expect(output).toContain(message);
  await unchanged(output, seen);
});

// On Windows no process can press it for another.
it.skipIf(process.platform === "win32")("keeps the version before when the operator presses Ctrl-C", async () => {
  const seen = callers(base, "key");
  const deployment = operator.start([], KEY);
  await deployment.says("The smoke test of version");
  await deployment.says("Shares of the callers: ");
  deployment.interrupt();
  const { status, output } = await deployment.ended;
  expect(status).not.toBe(0);
  expect(output).toContain("production is not up to date. It was interrupted by SIGINT.");
  await unchanged(output, seen);
});

it("keeps the version before where no request can choose its version", async () => {
  cloudflare.edge.overrides = false;
  const seen = callers(base, "key");
  const { status, output } = await operator.deploy(["--wait", "3"], KEY);
  cloudflare.edge.overrides = true;
  expect(status).toBe(1);
  expect(output).toContain("The version override was not honoured within 3 s.");
  expect(output).toContain("npx wrangler deploy --env production");
  await unchanged(output, seen);
});

it("leaves alone what somebody has begun by hand", async () => {
  const shares = [
    { version_id: version, percentage: 90 },
    { version_id: cloudflare.workers.get(WORKER)?.versions[0]?.id ?? "", percentage: 10 },
  ];
  const deployments = cloudflare.workers.get(WORKER)?.deployments;
  deployments?.unshift({ id: "split", versions: shares });
  const { status, output } = await operator.deploy([], KEY);
  expect(operator.serving()).toEqual(shares);
  deployments?.shift();
  expect(status).toBe(1);
  expect(output).toContain("Callers are split between versions");
  expect(output.trim()).toMatch(/ serves 90 %, version .* serves 10 %; nothing was changed\.$/);
});

it("deploys after all that", async () => {
  const { status, output } = await operator.deploy([], KEY);
  expect(status).toBe(0);
  const [serving, ...others] = operator.serving() ?? [];
  expect(others).toEqual([]);
  expect(serving?.version_id).not.toBe(version);
  expect(output).toContain(`version ${serving?.version_id} serves`);
  expect(await cloudflare.query(WORKER, "SELECT count(*) AS animals FROM pets")).toEqual([{ animals: 1 }]);
});
