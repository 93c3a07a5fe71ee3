// How the deployment is called; nothing here reaches the account.

import { afterAll, expect, it } from "vitest";
import { startOperator } from "./operator.ts";

const operator = await startOperator("staging", "animal-store-staging");
afterAll(() => operator[Symbol.asyncDispose]());
operator.write("none.env", "OTHER=first\n");
operator.write("none.json", '{"API_KEY":""}');

it.each([
  ["no key", [], {}, "There is no key in API_KEY."],
  ["an empty key", [], { API_KEY: " " }, "There is no key in API_KEY."],
  ["a secrets file that is not there", ["--secrets-file", "nowhere.env"], {}, "There is no file nowhere.env."],
  [
    "a secrets file without a key",
    ["--secrets-file", "none.env"],
    { API_KEY: "k" },
    "There is no key in API_KEY in none.env.",
  ],
  [
    "a secrets file in JSON without a key",
    ["--secrets-file", "none.json"],
    {},
    "There is no key in API_KEY in none.json.",
  ],
  ["an unknown flag", ["--secret-file", "s.env"], { API_KEY: "k" }, "Unknown option '--secret-file'"],
  ["a second environment", ["production"], { API_KEY: "k" }, "One environment must be named, and nothing else."],
  ["no number of seconds", ["--wait", "soon"], { API_KEY: "k" }, "--wait must be a number of seconds."],
  ["an address that is none", [], { API_KEY: "k", SMOKE_URL: "nowhere" }, "SMOKE_URL must be a URL."],
])("refuses %s, and says how it is called", async (_, flags, env, message) => {
  const { status, output } = await operator.deploy(flags, env);
  expect(output).toContain(message);
  expect(output).toContain("usage: API_KEY=<key> npm run deploy:<environment>");
  expect(status).toBe(2);
  expect(operator.cloudflare.requests).toEqual([]);
});
