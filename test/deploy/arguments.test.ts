// The command line of a deployment and its secrets file, through the function that reads both.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseArguments, printedBase } from "../../scripts/deploy/arguments.ts";
import { environmentNames, readEnvironment } from "../../scripts/environment.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-arguments-"));
afterAll(() => rmSync(folder, { recursive: true }));

const secret = "s3cret-value";

/** The secrets file's flag, or undefined to use the environment variable. */
function withFile(content: string | Uint8Array): string[] {
  writeFileSync(join(folder, "secrets"), content);
  return ["staging", "--secrets-file", join(folder, "secrets")];
}

/** The message without the path of the folder, which differs from run to run. */
function messageOf(args: string[], env: NodeJS.Dict<string> = {}): string {
  try {
    parseArguments(args, env);
  } catch (failure) {
    return (failure as Error).message.replaceAll(`${folder}/`, "").replaceAll(`${folder}\\`, "");
  }
  throw new Error("parseArguments accepts it");
}

describe("the environments", () => {
  it("are those of wrangler.toml", () => {
    expect(environmentNames()).toEqual(["staging", "production"]);
    expect(readEnvironment("staging")).toEqual({
      name: "staging",
      worker: "animal-store-staging",
      database: "animal-store-staging",
    });
  });
});

describe("the arguments", () => {
  it("have defaults", () => {
    expect(parseArguments(["staging"], { API_KEY: " one , two\n" })).toEqual({
      environment: readEnvironment("staging"),
      key: "two",
      place: [],
      wait: 90_000,
    });
  });

  it("are all read", () => {
    const args = [...withFile("API_KEY=one,two\n"), "--location", "weur", "--wait", "5"];
    expect(parseArguments(args, { API_KEY: "other", SMOKE_URL: "https://api.example.com/v1/" })).toMatchObject({
      secrets: { file: join(folder, "secrets"), keys: "one,two" },
      key: "two",
      place: ["--location=weur"],
      wait: 5_000,
      smokeUrl: "https://api.example.com/v1",
    });
    expect(parseArguments(["production", "--jurisdiction=eu"], { API_KEY: "k", SMOKE_URL: "" })).toMatchObject({
      place: ["--jurisdiction=eu"],
    });
  });

  it.each([
    ["no environment", [], "Name exactly one environment."],
    ["two environments", ["staging", "production"], "Name exactly one environment."],
    ["an unknown environment", ["test"], "The environment must be staging or production."],
    ["an unknown flag", ["staging", "--secret-file", "s.env"], "Unknown option '--secret-file'"],
    ["two places", ["staging", "--location=weur", "--jurisdiction=eu"], "Use --location or --jurisdiction, not both."],
    ["an empty location", ["staging", "--location="], "--location must not be empty."],
    ["an empty jurisdiction", ["staging", "--jurisdiction", ""], "--jurisdiction must not be empty."],
    ["a time that is not a number", ["staging", "--wait", "1m"], "--wait must be a number of seconds."],
  ])("reject %s", (_, args, message) => {
    expect(messageOf(args, { API_KEY: secret })).toContain(message);
  });

  it.each(["nowhere", "localhost:8787/v1", "ftp://example.com/v1", "https://"])("reject SMOKE_URL=%s", (SMOKE_URL) => {
    expect(messageOf(["staging"], { API_KEY: secret, SMOKE_URL })).toBe(
      "SMOKE_URL must be an http or https URL that ends in /v1.",
    );
  });

  it.each([
    [undefined, "API_KEY is missing or empty."],
    ["", "API_KEY is missing or empty."],
    [`${secret},a b,${secret},`, "API_KEY has entries that are not valid keys: 2, 4 ("],
    [`${secret}\n${secret}`, "API_KEY has entries that are not valid keys: 1 ("],
    [`${secret}ü`, "API_KEY has entries that are not valid keys: 1 ("],
    ["k".repeat(513), "API_KEY has entries that are not valid keys: 1 ("],
  ])("reject API_KEY=%j without quoting it", (API_KEY, message) => {
    const actual = messageOf(["staging"], { API_KEY });
    expect(actual).toContain(message);
    expect(actual).not.toContain(secret);
  });
});

describe("the address", () => {
  const DEPLOYED = "Deployed animal-store-staging triggers (0.06 sec)\n";
  it.each([
    [
      "  https://animal-store-staging.x.workers.dev\n  api.example.com (custom domain)\n",
      "animal-store-staging.x.workers.dev",
    ],
    ["  api.example.com (custom domain)\n", "api.example.com"],
    ["  api.example.com (custom domain - zone name: example.com)\n", "api.example.com"],
  ])("is read from what Wrangler prints: %j", (targets, host) => {
    expect(printedBase(DEPLOYED + targets)).toBe(`https://${host}/v1`);
  });

  it("is unknown if Wrangler prints none", () => {
    expect(printedBase(`${DEPLOYED}  example.com/*\n`)).toBeUndefined();
  });
});

describe("the secrets file", () => {
  const FORM = 'secrets must contain {"API_KEY": "<key>"}, or lines such as API_KEY=<key>.';

  it.each([
    ["lines", "OTHER=x\nAPI_KEY=one,two\n"],
    ["lines of Windows", "OTHER=x\r\nAPI_KEY=one,two\r\n"],
    ["a quoted value", 'API_KEY="one,two"\n'],
    ["a byte order mark", "\ufeffAPI_KEY=one,two\n"],
    ["JSON", '{"API_KEY": "one,two"}'],
    ["JSON with a byte order mark and line ends of Windows", '\ufeff{\r\n"API_KEY": "one,two"\r\n}\r\n'],
  ])("may have %s", (_, content) => {
    expect(parseArguments(withFile(content), {})).toMatchObject({ secrets: { keys: "one,two" }, key: "two" });
  });

  it.each([
    ["no API_KEY", `OTHER=${secret}\n`, FORM],
    ["nothing", "", FORM],
    ["an empty API_KEY", "API_KEY=\n", "API_KEY in secrets is missing or empty."],
    ["an empty string", '{"API_KEY": ""}', "API_KEY in secrets is missing or empty."],
    [
      "an invalid entry",
      `API_KEY=${secret},two three\n`,
      "API_KEY in secrets has entries that are not valid keys: 2 (",
    ],
    ["null", "null", FORM],
    ["a string", `"${secret}"`, FORM],
    ["UTF-16", Buffer.from(`\ufeffAPI_KEY=${secret}`, "utf16le"), FORM],
    ["a number", '{"API_KEY": 5}', FORM],
    ["null as API_KEY", '{"API_KEY": null}', FORM],
    ["an array of keys", `{"API_KEY": ["${secret}"]}`, FORM],
    ["an object of keys", `{"API_KEY": {"staging": "${secret}"}}`, FORM],
    ["API_KEY one level down", `{"staging": {"API_KEY": "${secret}"}}`, FORM],
    ["an array", `[{"API_KEY": "${secret}"}]`, FORM],
    ["broken JSON", `{"API_KEY": ${secret}}`, FORM],
  ])("must not have %s", (_, content, message) => {
    const actual = messageOf(withFile(content), { API_KEY: "a-valid-key" });
    expect(actual).toContain(message);
    expect(actual).not.toContain(secret);
  });

  it("must be a file", () => {
    mkdirSync(join(folder, "directory"));
    const messageFor = (name: string) => messageOf(["staging", "--secrets-file", join(folder, name)]);
    expect(messageFor("nowhere")).toBe("nowhere is not a file.");
    expect(messageFor("directory")).toBe("directory is not a file.");
  });
});
