// Staging, where all goes well: from nothing to a first deployment, and two more that replace its key.

import { execFileSync } from "node:child_process";
import { afterAll, expect, it } from "vitest";
import { callers, startOperator } from "./operator.ts";

const WORKER = "animal-store-staging";
const operator = await startOperator("staging", WORKER);
const { cloudflare, base } = operator;
afterAll(() => operator[Symbol.asyncDispose]());

// Wrangler reads it too, and nothing of it belongs into an environment.
operator.write(".env", "API_KEY=local\n");

const statusWith = async (key: string) =>
  (await fetch(`${base}/pets`, { headers: { Authorization: `Bearer ${key}` } })).status;

operator.write("none.env", "OTHER=one\n");
operator.write("wrong.env", "API_KEY=one,two three\n");
operator.write("broken.json", '{"API_KEY": secret}');

it.each([
  ["without a key", [], {}, "There is no API_KEY."],
  ["with no such file", ["--secrets-file", "nowhere.env"], {}, "There is no file nowhere.env."],
  ["without a key in the file", ["--secrets-file", "none.env"], { API_KEY: "k" }, "There is no API_KEY in none.env."],
  [
    "with what can be no key",
    ["--secrets-file", "wrong.env"],
    {},
    "Of API_KEY in wrong.env, entry 2 can be no key (letters, digits and -._~+/).",
  ],
  ["with JSON that is none", ["--secrets-file", "broken.json"], {}, "broken.json is not valid JSON."],
  ["with an unknown flag", ["--secret-file", "s.env"], { API_KEY: "k" }, "Unknown option '--secret-file'"],
  ["with an address that is none", [], { API_KEY: "k", SMOKE_URL: "nowhere" }, "SMOKE_URL must be a URL."],
])("says how it is called, %s", async (_, flags, env, message) => {
  const { status, output } = await operator.deploy(flags, env);
  expect(output).toContain(message);
  expect(output).toContain("usage: API_KEY=<key> npm run deploy:<environment>");
  expect(status).toBe(2);
  expect(cloudflare.requests).toEqual([]);
});

it("creates nothing without a secrets file", async () => {
  const { status, output } = await operator.deploy([], { API_KEY: "one" });
  expect(status).toBe(1);
  expect(output).toContain(
    `There is no Worker ${WORKER} yet, and a first deployment is a person's, who says where the data shall live:`,
  );
  expect(output.trim()).toMatch(/: there is no such Worker, so nothing serves; nothing was changed\.$/);
  expect(cloudflare.requests.filter((request) => !request.startsWith("GET "))).toEqual([]);
});

it("creates the database where it is told, migrates and deploys, the first time", async () => {
  operator.write("staging.env", "API_KEY=one\n");
  const { status, output } = await operator.deploy(["--secrets-file", "staging.env", "--location", "weur"]);
  const [serving] = operator.serving() ?? [];
  expect(output.trim()).toMatch(RegExp(`${WORKER}: version ${serving?.version_id} serves, at ${base}\\.$`));
  expect(status).toBe(0);
  expect(cloudflare.databases.get(WORKER)).toMatchObject({ primary_location_hint: "weur" });
  expect(await statusWith("one")).toBe(200);
});

it("replaces the key without one refused request", async () => {
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", 'pets: say "more"');

  operator.write("staging.env", "API_KEY=one,two\n");
  const withOld = callers(base, "one");
  expect(await operator.deploy(["--secrets-file", "staging.env"], { API_KEY: "another" })).toMatchObject({ status: 0 });
  expect((await withOld.stop()).map(({ status }) => status)).toEqual([200, 200]);

  operator.write("README.md", "Changed and not committed.");
  operator.write("staging.json", '{"API_KEY": "two"}');
  const withNew = callers(base, "two");
  expect(await operator.deploy(["--secrets-file", "staging.json"], { SMOKE_URL: `${base}/` })).toMatchObject({
    status: 0,
  });
  expect((await withNew.stop()).map(({ status }) => status)).toEqual([200, 200]);
  expect([await statusWith("one"), await statusWith("two"), await statusWith("another")]).toEqual([401, 200, 401]);

  const [newest, middle, first] = cloudflare.workers.get(WORKER)?.versions ?? [];
  const commit = git("rev-parse", "--short", "HEAD");
  expect(middle?.annotations).toEqual({ "workers/tag": commit, "workers/message": 'pets: say "more"' });
  expect(newest?.annotations["workers/tag"]).toBe(`${commit}-dirty`);
  expect(first?.annotations).toEqual({});
});

it("has left one animal, and asks for no other place", async () => {
  expect(await cloudflare.query(WORKER, "SELECT count(*) AS animals FROM pets")).toEqual([{ animals: 1 }]);
  const { status, output } = await operator.deploy(["--jurisdiction", "eu"], { API_KEY: "two" });
  expect(status).toBe(1);
  expect(output).toContain(`The Worker ${WORKER} exists, and where its data lives cannot be changed`);
  expect(output.trim()).toMatch(/ serves, alone; nothing was changed\.$/);
});

function git(...args: string[]): string {
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  return execFileSync("git", [...identity, ...args], { cwd: operator.folder, encoding: "utf8" }).trim();
}
