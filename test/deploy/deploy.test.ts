// Staging, from nothing to a first deployment with `npm run deploy:staging`, an interrupted one, and a plain
// `wrangler deploy`.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { callers, startOperator } from "./operator.ts";

const WORKER = "animal-store-staging";
const operator = await startOperator("staging", WORKER);
const { cloudflare, base } = operator;
afterAll(() => operator[Symbol.asyncDispose]());

// The endpoint for deployments answers 10007 or 10090; failure.test.ts has the other.
cloudflare.missingWorkerCode = 10090;

// Wrangler reads this file too, and nothing in it may reach an environment.
operator.write(".env", "API_KEY=local\n");

const writes = () => cloudflare.requests.filter((request) => !request.startsWith("GET "));

it("creates nothing without a secrets file, without knowing the account, or in a dry run", async () => {
  const signedOut = { CLOUDFLARE_API_TOKEN: undefined, XDG_CONFIG_HOME: operator.folder };
  const [noFile, twoAccounts, dryRun] = await Promise.all([
    operator.deploy([], { API_KEY: "one" }),
    operator.deploy([], { API_KEY: "one", CLOUDFLARE_ACCOUNT_ID: undefined }),
    operator.run("npx", ["wrangler", "deploy", "--dry-run", "--env", "staging"], signedOut),
  ]);
  expect(noFile.output).toContain(`The Worker ${WORKER} does not exist yet. Run the first deployment yourself:`);
  expect(noFile.output.trim()).toMatch(/: the Worker does not exist; nothing was changed\.$/);
  expect(twoAccounts.output).toContain("Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts.");
  expect(dryRun.output).toContain("--dry-run: exiting now.");
  expect([noFile.status, twoAccounts.status, dryRun.status]).toEqual([1, 1, 0]);
  expect(writes()).toEqual([]);
});

it("creates the database at the given location, migrates and deploys, the first time", async () => {
  operator.write("staging.env", "API_KEY=one\n");
  const flags = ["--secrets-file", "staging.env", "--location", "weur"];
  const { status, output } = await operator.run("npm", ["run", "deploy:staging", "--", ...flags]);
  const [serving] = operator.serving() ?? [];
  expect(output.trim()).toMatch(
    RegExp(`${WORKER}: version ${serving?.version_id} serves all requests, at ${base}\\.$`),
  );
  // Wrangler's advice, which must not be followed, and what the build says to those who deploy without this command.
  expect(output).not.toMatch(/add the following snippet|does not apply migrations/);
  expect(status).toBe(0);
  expect(cloudflare.databases.get(WORKER)).toMatchObject({ primary_location_hint: "weur" });
  const applied = await cloudflare.query(WORKER, "SELECT name FROM d1_migrations ORDER BY id");
  expect(applied.map(({ name }) => name)).toEqual(readdirSync(join(operator.folder, "migrations")).sort());
  expect(await cloudflare.query(WORKER, "SELECT count(*) AS animals FROM pets")).toEqual([{ animals: 1 }]);
  expect([await operator.statusWith("one"), await operator.statusWith("local")]).toEqual([200, 401]);
  const [first] = cloudflare.workers.get(WORKER)?.versions ?? [];
  expect(first?.annotations).toEqual({ "workers/message": "[new keys]" });
  // The names and lines of a stack in the log are those of the source.
  expect(/^(async )?function createPet\(/m.test(Object.values(first?.modules ?? {}).join("\n"))).toBe(true);
});

it("rejects a location for a database that exists", async () => {
  const { status, output } = await operator.deploy(["--jurisdiction", "eu"], { API_KEY: "one" });
  expect(status).toBe(1);
  expect(output).toContain(`${WORKER} already exists, and its location cannot be changed: leave out --location and`);
  expect(output.trim()).toMatch(/ serves 100% of the requests; nothing was changed\.$/);
});

// On Windows, one process cannot send Ctrl-C to another.
it.skipIf(process.platform === "win32")("keeps the current version when the operator presses Ctrl-C", async () => {
  const serving = operator.serving();
  const seen = callers(base, "one");
  // The version override is ignored, so the deployment waits, and Ctrl-C comes while it does.
  cloudflare.edge.overrides = false;
  const deployment = operator.start([], { API_KEY: "one" });
  await deployment.says("Traffic: ");
  deployment.interrupt();
  const { status, output } = await deployment.ended;
  cloudflare.edge.overrides = true;
  expect(status).toBe(130);
  expect(output).toContain("Interrupted by SIGINT.\n\nstaging is not up to date.");
  expect(output.trim()).toMatch(
    RegExp(`version ${serving?.[0]?.version_id} serves 100% of the requests; see the step ".*" above.$`),
  );
  expect(operator.serving()).toEqual(serving);
  expect((await seen.stop()).map(({ status }) => status)).toEqual([200]);
  // Without a secrets file the keys do not change, so the message does not mention them.
  expect(cloudflare.workers.get(WORKER)?.versions[0]?.annotations).toEqual({});
});

it("leaves a split of the traffic alone", async () => {
  const shares = [
    { version_id: operator.serving()?.[0]?.version_id ?? "", percentage: 90 },
    { version_id: cloudflare.workers.get(WORKER)?.versions[0]?.id ?? "", percentage: 10 },
  ];
  const deployments = cloudflare.workers.get(WORKER)?.deployments;
  deployments?.unshift({ id: "split", versions: shares });
  const { status, output } = await operator.deploy([], { API_KEY: "one" });
  expect(operator.serving()).toEqual(shares);
  deployments?.shift();
  expect(status).toBe(1);
  expect(output).toContain("Somebody has split the traffic between versions by hand.");
  expect(output.trim()).toMatch(/ serves 90%, version .* serves 10% of the requests; nothing was changed\.$/);
});

it("lets Wrangler alone deploy, and says what that leaves out", async () => {
  const { status, output } = await operator.run("npx", ["wrangler", "deploy", "--env", "staging"]);
  expect(output).toContain("This does not apply migrations or run the smoke test. npm run deploy:staging does both");
  expect(status).toBe(0);
  expect(operator.serving()).toEqual([
    { version_id: cloudflare.workers.get(WORKER)?.versions[0]?.id, percentage: 100 },
  ]);
  await expect.poll(() => operator.statusWith("one")).toBe(200);
});
