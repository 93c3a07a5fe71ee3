// Deployments, to what replaces Cloudflare: in which order they do what, and where they stop.

import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { git } from "../git.ts";
import { baseOf, cloudflare, commit, deploy, folder, place, runScript } from "./fake-cloudflare.ts";

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
    const urls = ["staging", "production"].map((environment) => `url=${baseOf(environment)}\n`);
    expect(readFileSync(GITHUB_OUTPUT, "utf8")).toBe(urls.join(""));
    expect(output.endsWith(`\nCommit ${commit} is deployed.\n`)).toBe(true);
    // Vitest runs the files of all tests in any order.
    const { events } = cloudflare;
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
    Object.assign(cloudflare, { failing: event, onEvent: react });
    const { status, errors } = await deploy();
    git(folder, "checkout", "--quiet", ".");
    expect(errors).toContain(NEXT);
    expect(status).toBe(1);
    expect(cloudflare.events).toEqual(inStaging.slice(0, count));
    expect(cloudflare.serving).toEqual({ staging: "0ld", production: "0ld" });
  });

  it.each([
    ["a test fails there", () => (cloudflare.failing = /^all tests/), "The command above failed."],
    [
      "somebody deploys a different commit",
      () => (cloudflare.serving["staging"] = "0ther"),
      "Staging serves 0ther now",
    ],
  ])("leaves production alone if in staging, during its tests, %s", async (_, react, message) => {
    cloudflare.onEvent = (event) => event === ALL_TESTS && react();
    const { status, errors } = await deploy();
    expect(errors).toMatch(RegExp(`${message}[\\s\\S]*${NEXT}`));
    expect(status).toBe(1);
    expect(cloudflare.events).toEqual(expect.arrayContaining(inStaging));
    expect(cloudflare.events.filter((event) => event.includes("production"))).toEqual([]);
  });
});

describe("npm run deploy:<environment>", () => {
  it("deploys to one environment, and fails if the smoke test does", async () => {
    cloudflare.failing = /^smoke/;
    const { status, output, errors } = await deploy("production");
    expect(output).toContain("This commit is not tested in staging first");
    expect([status, errors]).toEqual([1, expect.stringContaining(NEXT)]);
    // Vitest repeats a test that fails.
    expect([...new Set(cloudflare.events)]).toEqual([
      ...commandsFor("production"),
      "production is asked",
      "smoke test production with a key",
    ]);
    expect(cloudflare.serving).toEqual({ staging: "0ld", production: commit });
  });

  it("does not say in the workflow that production gets an untested commit", async () => {
    cloudflare.failing = /^deployments/;
    const { output } = await deploy("production", { GITHUB_OUTPUT: join(folder, ".git/output") });
    expect(output).not.toContain("not tested");
  });

  it("takes nothing but a commit", async () => {
    place("src/new.ts");
    const { status, errors } = await deploy("staging");
    rmSync(join(folder, "src/new.ts"));
    expect(errors).toContain("?? src/new.ts");
    expect([status, cloudflare.events]).toEqual([1, []]);
  });

  it.each([
    ["an unknown environment", "demo", {}, "usage: "],
    ["no key of staging, for its tests", "", { API_KEY: "" }, "The tests in staging need one of its API keys"],
  ])("does nothing with %s", async (_, environment, env, message) => {
    expect(await deploy(environment, env)).toMatchObject({ status: 1, errors: expect.stringContaining(message) });
    expect(cloudflare.events).toEqual([]);
  });
});

it("npm run backup reads the deployed database", async () => {
  const { status, output } = await runScript(["scripts/backup.ts", "production", "backup.sql"]);
  expect([status, output]).toEqual([1, ""]); // Nothing is answered.
  expect(cloudflare.events).toEqual([
    expect.stringMatching(/^d1 execute DB --env production --remote --json --command SELECT /),
  ]);
});
