// What `npm run setup` asks Cloudflare for, and in which order.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { git } from "../git.ts";
import { cloudflare, edit, folder, place, runScript } from "./cloudflare.ts";

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
  const found = /^(\w+ has the database animal-store-\w+\.\n\w+ has an API key, which stays as it is\.\n){2}\nThen: /;
  expect([again.status, again.output]).toEqual([0, expect.stringMatching(found)]);
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
  [
    ["--jurisdiction=eu"],
    "wrangler.toml records --location=weur for staging; you asked for --jurisdiction=eu.\nChange",
  ],
  // With the place of production alone.
  [["--location=weur"], "records no place for staging", () => edit("wrangler.toml", / # --location=\w+/, "")],
  [["--location=weur"], "wrangler.toml has changes", () => edit("wrangler.toml", "73001", "1")],
  [["--location=weur"], "wrangler.jsonc.\nMove this clone", () => place("wrangler.jsonc")],
])("does nothing with %j if it says: %s", async (args, message, change = () => {}) => {
  change();
  const { status, errors } = await setup(...args);
  git(folder, "checkout", "--quiet", ".");
  rmSync(join(folder, "wrangler.jsonc"), { force: true });
  expect([status, errors]).toEqual([1, expect.stringContaining(message)]);
  expect(cloudflare.events).toEqual([]);
});
