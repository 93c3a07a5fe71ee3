// The command line of a deployment, its addresses and its keys.

import { expect, it } from "vitest";
import { parseArguments } from "../../scripts/deploy/arguments.ts";
import { baseIn } from "../../scripts/deploy/deploy.ts";
import { environmentNames, readEnvironment } from "../../scripts/environment.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";

const secret = "s3cret-value";
const read = (args: string[], env: NodeJS.Dict<string> = {}) => parseArguments(args, { API_KEY: secret, ...env });

it("the environments are those of wrangler.toml", () => {
  expect(environmentNames()).toEqual(["staging", "production"]);
  const worker = "animal-store-staging";
  expect(readEnvironment("staging")).toEqual({ name: "staging", worker, database: worker });
});

it("the arguments have defaults", () => {
  expect(read(["staging"], { API_KEY: " one , two\n", SMOKE_URL: "" })).toEqual({
    environment: readEnvironment("staging"),
    keys: { given: ["one", "two"], adds: false, change: false, revokesAll: false },
    place: [],
    wait: 90_000,
  });
});

it("all arguments are read", () => {
  const args = ["staging", "--set-keys", "--revoke-all-keys", "--location", "weur", "--wait", "5"];
  expect(
    read(args, { API_KEY: "one,two,one", SMOKE_URL: "https://api.example.com/v1/", GITHUB_OUTPUT: "file" }),
  ).toMatchObject({
    keys: { given: ["one", "two"], adds: false, change: true, revokesAll: true },
    place: ["--location=weur"],
    wait: 5_000,
    smokeUrl: "https://api.example.com/v1",
    githubOutput: "file",
  });
  expect(read(["production", "--jurisdiction=eu", "--new-key"], { API_KEY: "" })).toMatchObject({
    keys: { given: [], adds: true, change: true },
    place: ["--jurisdiction=eu"],
  });
});

it.each([
  [[], "The environment must be staging or production."],
  [["test"], "The environment must be staging or production."],
  [["staging", "weur"], "Too many arguments. A place is --location=<hint> or --jurisdiction=<name>."],
  [["staging", "--new-keys"], "Unknown option '--new-keys'"],
  [["staging", "--location=weur", "--jurisdiction=eu"], "or --jurisdiction=eu|us|fedramp, not both."],
  [["staging", "--location=eu"], "Use --location=weur|eeur|wnam|enam|apac|oc or "],
  [["staging", "--new-key", "--set-keys"], "Use --new-key or --set-keys, not both."],
  [["staging", "--revoke-all-keys"], "--revoke-all-keys needs --new-key or --set-keys."],
  [["staging", "--new-key", "--revoke-all-keys"], "Unset API_KEY: a revoked key might be in it. Or use --set-keys."],
  [["staging", "--wait", "1m"], "--wait must be a number of seconds."],
])("rejects the arguments %j", (args, message) => {
  expect(() => read(args)).toThrow(message);
});

it.each([
  ["", "API_KEY is missing or empty."],
  [`${secret},a b,${secret},`, "API_KEY: entries 2, 4 are not valid keys ("],
  [`${secret}\n${secret}`, "API_KEY: entry 1 is not a valid key ("],
  ["k".repeat(513), "API_KEY: entry 1 is not a valid key ("],
])("rejects API_KEY=%j without quoting it", (API_KEY, message) => {
  expect(() => read(["staging"], { API_KEY })).toThrow(message);
  expect(() => read(["staging"], { API_KEY })).not.toThrow(secret);
});

it("rejects a flag that npm has taken", () => {
  expect(() => read(["staging"], { npm_config_set_keys: "true" })).toThrow("Write -- before the flags.");
});

it("prints no new key into the log of a workflow", () => {
  expect(() => read(["staging", "--new-key"], { GITHUB_ACTIONS: "true" })).toThrow("--new-key prints a key");
});

it("allows plain HTTP only on this machine", () => {
  for (const SMOKE_URL of ["http://localhost:8787/v1", "http://127.1.2.3:8787/v1", "http://[::1]:8787/v1"]) {
    expect(read(["staging"], { SMOKE_URL }).smokeUrl).toBe(SMOKE_URL);
  }
  for (const host of ["example.com", "127.0.0.1.example.com", "localhost.example.com", "example-localhost"]) {
    const message = "SMOKE_URL must be an https URL that ends in /v1, or an http URL of localhost.";
    expect(() => read(["staging"], { SMOKE_URL: `http://${host}/v1` })).toThrow(message);
    expect(() => read(["staging"], { SMOKE_URL: `https://${host}` })).toThrow(message);
    expect(() => read(["staging"], { SMOKE_URL: `${host}/v1` })).toThrow(message);
  }
});

it.each([
  ["  https://a.x.workers.dev\n  api.example.com (custom domain)\n", "https://a.x.workers.dev/v1"],
  ["  api.example.com (custom domain)\n", "https://api.example.com/v1"],
  ["  api.example.com (custom domain - zone name: example.com)\n", "https://api.example.com/v1"],
])("reads the address that Wrangler prints: %j", (targets, base) => {
  expect(baseIn(`Deployed animal-store-staging triggers (0.06 sec)\n${targets}`)).toBe(base);
});

it("needs the base URL if Wrangler prints no address", () => {
  expect(() => baseIn("  example.com/*\n")).toThrow(
    "Wrangler did not print an address: set SMOKE_URL to the base URL.",
  );
  expect(baseIn("  example.com/*\n", "https://example.com/v1")).toBe("https://example.com/v1");
});

it.each([
  ["\u001b[31mIt broke.\u001b[0m\n", "It broke.\nwrangler d1 list failed."],
  ["More than one account available", "Set CLOUDFLARE_ACCOUNT_ID to the id of one: npx wrangler whoami"],
  ["set a CLOUDFLARE_API_TOKEN environment variable … --temporary", "Run npx wrangler login, or set"],
])("a failure of Wrangler has a remedy: %j", (output, message) => {
  expect(new WranglerFailed("d1 list", output).message).toContain(message);
  expect(new WranglerFailed("d1 list", output).message).not.toContain("--temporary");
});
