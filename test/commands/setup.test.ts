// What `npm run setup` asks Cloudflare for, and in which order.

import { expect, it } from "vitest";
import { cloudflare, runScript } from "./cloudflare.ts";

const setup = (...args: string[]) => runScript(["scripts/setup.ts", ...args]);

it("creates what is missing, database first, prints the key that it sets, and continues after a failure", async () => {
  Object.assign(cloudflare, { databases: [], keys: {}, fails: (event: string) => event === "staging: new key" });
  expect((await setup("--location=weur")).status).toBe(1);
  expect(cloudflare.events.splice(0)).toEqual([
    ": databases",
    "staging: secrets",
    "staging: new database",
    "staging: new key",
  ]);

  cloudflare.fails = () => false;
  const { status, output } = await setup("--location=weur");
  expect([status, output]).toEqual([0, expect.stringContaining("Then: npm run deploy\n")]);
  expect(output).toContain("Successfully created DB 'animal-store-production' using primary location hint weur\n");
  expect(output).not.toContain("database_id");
  const printed = Array.from(output.matchAll(/^API key of (\w+): ([\w-]{43})$/gm), ([, ...found]) => found);
  expect(printed).toEqual(Object.entries(cloudflare.keys));
  const production = ["production: secrets", "production: new database", "production: new key"];
  expect(cloudflare.events.splice(0)).toEqual([": databases", "staging: secrets", "staging: new key", ...production]);

  expect((await setup("production", "--location=weur")).status).toBe(0);
  expect(cloudflare.events).toEqual([": databases", "production: secrets"]);
});

it.each([
  ["a key without a database", { databases: [] }, 'not animal-store-production: see "A deleted database"'],
  ["secrets that cannot be listed", { fails: (event: string) => /secrets/.test(event) }, "as the test wants"],
])("creates nothing if it finds %s", async (_, found, message) => {
  Object.assign(cloudflare, found);
  const { status, errors } = await setup("production", "--location=weur");
  expect([status, errors]).toEqual([1, expect.stringContaining(message)]);
  expect(cloudflare.events).toEqual([": databases", "production: secrets"]);
});

it.each([
  [[], "usage: npm run setup"],
  [["demo", "--location=weur"], "usage: npm run setup"],
  [["--location=mars"], "usage: npm run setup"],
  [["--location=weur", "--jurisdiction=eu"], "usage: npm run setup"],
  [["--jurisdiction=eu"], "wrangler.toml has --location=weur next to the database of staging"],
])("does nothing with %j", async (args, message) => {
  const { status, errors } = await setup(...args);
  expect([status, errors]).toEqual([1, expect.stringContaining(message)]);
  expect(cloudflare.events).toEqual([]);
});
