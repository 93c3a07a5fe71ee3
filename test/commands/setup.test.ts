// What `npm run setup` asks Cloudflare for, and in which order.

import { expect, it } from "vitest";
import { cloudflare, runScript } from "./cloudflare.ts";

const setup = (...args: string[]) => runScript(["scripts/setup.ts", ...args]);

it("creates what is missing, database first, prints the key that it sets, and continues after a failure", async () => {
  cloudflare.databases = ["animal-store-production"];
  cloudflare.keys = { production: "a-key" };
  cloudflare.fails = (event) => event === "staging: new key";
  const failed = await setup("--location=weur");
  expect(failed).toMatchObject({ status: 1, output: expect.stringMatching(/^API key of staging: [\w-]{43}$/m) });
  expect(failed.output).toContain("Successfully created DB 'animal-store-staging' using primary location hint weur\n");
  expect(failed.output).not.toContain("database_id");
  const created = ["staging: new database", "staging: new key"];
  expect(cloudflare.events.splice(0)).toEqual([": databases", "staging: secrets", ...created]);

  cloudflare.fails = () => false;
  const { status, output } = await setup("staging", "--location=weur");
  expect([status, output]).toEqual([0, expect.stringContaining("Then: npm run deploy:staging\n")]);
  expect(/^API key of staging: (.*)$/m.exec(output)?.[1]).toBe(cloudflare.keys["staging"]);
  expect(cloudflare.events.splice(0)).toEqual([": databases", "staging: secrets", "staging: new key"]);

  const again = await setup("--location=weur");
  expect([again.status, again.output]).toEqual([0, expect.stringMatching(/^\nSave .*\nThen: npm run deploy\n$/)]);
  expect(cloudflare.events).toEqual([": databases", "staging: secrets", "production: secrets"]);
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
