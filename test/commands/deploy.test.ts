// Deployments, to a server that replaces Cloudflare: in which order they do what, and where they stop.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { git } from "../git.ts";
import { onTerminal } from "../processes.ts";
import { cloudflare, commit, ENV, folder, place, runScript } from "./cloudflare.ts";

const deploy = (environment: string, env: NodeJS.Dict<string> = {}) =>
  runScript(["scripts/deploy.ts", environment], env);

const NEXT = "\nWorker-Version in each response names the commit that serves. Correct the cause, and run the same";

const BEFORE_UPLOAD = ["deployments", "bookmark", "query"];
const DEPLOYED = [...BEFORE_UPLOAD, "deployments", "upload", "live", "which commit?"];
const inStaging = [...DEPLOYED, "all tests with key-of-staging", "smoke test with key-of-staging", "which commit?"];
const inProduction = [...DEPLOYED, "smoke test with key-of-production", "which commit?"];

/** What has happened in an environment. Vitest runs the files of all tests in any order. */
function eventsIn(environment: string): string[] {
  const events = cloudflare.events.filter((event) => event.startsWith(`${environment}: `));
  const names = events.map((event) => event.slice(environment.length + 2));
  const tests = names.filter((event) => event.includes("test")).sort();
  return names.map((event) => (event.includes("test") ? (tests.shift() ?? "") : event));
}

// With the command `script` of Linux.
it.skipIf(process.platform !== "linux")(
  "npm run deploy deploys to staging, tests, and goes on to production, but not with a file that was edited meanwhile",
  async () => {
    cloudflare.fails = (event) => {
      if (event === "production: query") place("README.md", "edited");
      return false;
    };
    const answers = { "API key of production (not shown): ": "key-of-production\n" };
    const { status, output } = await onTerminal("node scripts/deploy.ts", answers, folder, ENV);
    git(folder, "checkout", "--quiet", ".");
    expect(output).toContain("README.md");
    expect(status).toBe(1);
    expect([eventsIn("staging"), eventsIn("production")]).toEqual([inStaging, BEFORE_UPLOAD]);
    expect(cloudflare.events.findIndex((event) => event.startsWith("production"))).toBe(inStaging.length);
    expect(cloudflare.serving).toEqual({ staging: commit, production: "0ld" });
    // Stacks in the log are readable.
    expect(cloudflare.script).toMatch(/^(async )?function createPet\(/m);
  },
);

it("uploads nothing if a migration fails", async () => {
  cloudflare.fails = (event) => event.endsWith("query");
  const { status, errors } = await deploy("staging");
  expect([status, errors]).toEqual([1, expect.stringContaining(NEXT)]);
  expect(eventsIn("staging")).toEqual(BEFORE_UPLOAD);
});

it("fails if a test does, or if somebody deploys meanwhile; here, to both environments at once", async () => {
  cloudflare.fails = (event) => {
    if (/^production: .*test/.test(event)) cloudflare.serving["production"] = "0ther";
    return /^staging: .*test/.test(event);
  };
  const [staging, production] = await Promise.all([
    deploy("staging"),
    deploy("production", { API_KEY: "key-of-production" }),
  ]);
  expect([staging.status, staging.errors]).toEqual([1, expect.stringContaining(`command above failed.${NEXT}`)]);
  // Vitest repeats a test that fails.
  expect(new Set(eventsIn("staging"))).toEqual(new Set(inStaging));
  const base = "https://animal-store-production.acme.workers.dev/v1";
  expect(production.errors).toContain(`${base} serves 0ther now, and not commit ${commit}, which was tested.${NEXT}`);
  expect(production.status).toBe(1);
  expect(eventsIn("production")).toEqual(inProduction);
});

it("takes nothing but a commit", async () => {
  place("src/new.ts");
  const { status, errors } = await deploy("staging");
  rmSync(join(folder, "src/new.ts"));
  expect(errors).toContain("?? src/new.ts");
  expect([status, cloudflare.events]).toEqual([1, []]);
});

it.each([
  ["an unknown environment", "demo", "key", "usage: "],
  ["no key", "production", "", "An API key of production is required: enter it on a terminal, or set the environment"],
])("does nothing with %s", async (_, environment, API_KEY, message) => {
  expect(await deploy(environment, { API_KEY })).toMatchObject({ status: 1, errors: expect.stringContaining(message) });
  expect(cloudflare.events).toEqual([]);
});

it("does not take production's key for `npm run deploy` from the variable, which has staging's", async () => {
  const { errors } = await runScript(["scripts/deploy.ts"]);
  expect(errors).toContain("An API key of production is required: enter it on a terminal (without one, run");
  expect(cloudflare.events).toEqual([]);
});

it("npm run backup reads the deployed database", async () => {
  const { output } = await runScript(["scripts/backup.ts", "production", ".wrangler/backup.sql"]);
  expect(output).toBe("Saved 0 animals of production in .wrangler/backup.sql.\n");
  expect(cloudflare.events).toEqual(["production: query"]);
});
