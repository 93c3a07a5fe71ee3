// The deployment as far as it goes without an account: it says how it is called, and stops at the first step that fails.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

function deploy(environment: string, flags: string[]) {
  const { status, stdout, stderr } = spawnSync("npm", ["run", `deploy:${environment}`, "--", ...flags], {
    // A Cloudflare API that nothing listens for.
    env: {
      ...process.env,
      API_KEY: "",
      CLOUDFLARE_API_BASE_URL: "http://127.0.0.1:9/client/v4",
      CLOUDFLARE_API_TOKEN: "t",
      CLOUDFLARE_ACCOUNT_ID: "a",
    },
    encoding: "utf8",
    timeout: 50_000,
  });
  return { status, output: stdout + stderr };
}

it.each(["staging", "production"])("asks for a key to deploy to %s", (environment) => {
  const { status, output } = deploy(environment, []);
  expect(status).toBe(2);
  expect(output).toContain("usage: API_KEY=<key> npm run deploy:");
});

it("says which secrets file is not there", () => {
  const { status, output } = deploy("staging", ["--secrets-file", "nowhere.env"]);
  expect(status).toBe(1);
  expect(output).toContain("staging is not up to date. There is no file nowhere.env.");
});

it.each([
  ["dotenv", "API_KEY=first,second\n"],
  ["JSON", '{"API_KEY":"first,second"}'],
])("takes a secrets file in %s, and stops where the database cannot be reached", (_, secrets) => {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-secrets-"));
  try {
    writeFileSync(join(folder, "secrets"), secrets);
    const { status, output } = deploy("staging", ["--secrets-file", join(folder, "secrets")]);
    expect(status).toBe(1);
    expect(output).toContain("== staging: The database");
    expect(output).not.toContain("== staging: The migrations");
    expect(output).toContain("staging is not up to date. This step failed; nothing after it was done.");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
