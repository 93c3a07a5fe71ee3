// The command line of a deployment, its addresses and its keys.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { parseArguments } from "../../scripts/deploy/arguments.ts";
import { printedBase } from "../../scripts/deploy/deploy.ts";
import { environmentNames, readEnvironment } from "../../scripts/environment.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-arguments-"));
afterAll(() => rmSync(folder, { recursive: true }));

const secret = "s3cret-value";
const file = join(folder, "secrets.env");
const read = (args: string[], env: NodeJS.Dict<string> = {}) => parseArguments(args, { API_KEY: secret, ...env });

it("the environments are those of wrangler.toml", () => {
  expect(environmentNames()).toEqual(["staging", "production"]);
  const worker = "animal-store-staging";
  expect(readEnvironment("staging")).toEqual({ name: "staging", worker, database: worker });
});

it("the arguments have defaults", () => {
  expect(read(["staging"], { API_KEY: " one , two\n", SMOKE_URL: "" })).toEqual({
    environment: readEnvironment("staging"),
    keys: { all: ["one", "two"], newest: "two" },
    revokesAllKeys: false,
    place: [],
    wait: 90_000,
  });
});

it("all arguments are read", () => {
  writeFileSync(file, '# keys\r\nAPI_KEY="one,two"\r\n');
  const args = ["staging", "--secrets-file", file, "--revoke-all-keys", "--location", "weur", "--wait", "5"];
  expect(read(args, { SMOKE_URL: "https://api.example.com/v1/" })).toMatchObject({
    secretsFile: file,
    keys: { all: ["one", "two"], newest: "two" },
    revokesAllKeys: true,
    place: ["--location=weur"],
    wait: 5_000,
    smokeUrl: "https://api.example.com/v1",
  });
  expect(read(["production", "--jurisdiction=eu"])).toMatchObject({ place: ["--jurisdiction=eu"] });
});

it.each([
  [[], "The environment must be staging or production."],
  [["test"], "The environment must be staging or production."],
  [["staging", "weur"], "Too many arguments. Write --location=<hint> or --jurisdiction=<name> in full."],
  [["staging", "--secret-file", "s.env"], "Unknown option '--secret-file'"],
  [["staging", "--location=weur", "--jurisdiction=eu"], "Use --location or --jurisdiction, not both."],
  [["staging", "--secrets-file", "nowhere.env"], "no such file or directory, stat 'nowhere.env'"],
  [["staging", "--secrets-file", "docs"], "docs is not a file."],
  [["staging", "--wait", "1m"], "--wait must be a number of seconds."],
])("rejects the arguments %j", (args, message) => {
  expect(() => read(args)).toThrow(message);
});

it.each([
  ["", "API_KEY is missing or empty."],
  [`${secret},a b,${secret},`, "API_KEY has entries that are not valid keys: 2, 4 ("],
  [`${secret}\n${secret}`, "API_KEY has entries that are not valid keys: 1 ("],
  ["k".repeat(513), "API_KEY has entries that are not valid keys: 1 ("],
])("rejects API_KEY=%j without quoting it", (API_KEY, message) => {
  expect(() => read(["staging"], { API_KEY })).toThrow(message);
  expect(() => read(["staging"], { API_KEY })).not.toThrow(secret);
});

it.each([
  ["with a different secret", `API_KEY=${secret}\nOTHER=x\n`, "must contain only the line API_KEY=<key>."],
  ["of JSON", `{"API_KEY": "${secret}"}`, "is missing or empty."],
  ["in UTF-16", Buffer.from(`\ufeffAPI_KEY=${secret}`, "utf16le"), "must contain only the line API_KEY=<key>."],
  ["with an invalid entry", `API_KEY=${secret},a b\n`, "has entries that are not valid keys: 2 ("],
])("rejects a secrets file %s without quoting it", (_, content, problem) => {
  writeFileSync(file, content);
  expect(() => read(["staging", "--secrets-file", file])).toThrow(`${file} ${problem}`);
  expect(() => read(["staging", "--secrets-file", file])).not.toThrow(secret);
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
  ["  example.com/*\n", undefined],
])("reads the address that Wrangler prints: %j", (targets, base) => {
  expect(printedBase(`Deployed animal-store-staging triggers (0.06 sec)\n${targets}`)).toBe(base);
});

it.each([
  ["\u001b[31mIt broke.\u001b[0m\n", "It broke.\nwrangler d1 list failed."],
  ["More than one account available", "Set CLOUDFLARE_ACCOUNT_ID to the id of one of them: npx wrangler whoami"],
  ["set a CLOUDFLARE_API_TOKEN environment variable … --temporary", "Run npx wrangler login, or set"],
])("a failure of Wrangler has a remedy: %j", (output, message) => {
  expect(new WranglerFailed("d1 list", output).message).toContain(message);
  expect(new WranglerFailed("d1 list", output).message).not.toContain("--temporary");
});
