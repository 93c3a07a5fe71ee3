import { expect, it } from "vitest";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { findService } from "./deployed-setup.ts";
import { API_KEY, ORIGIN } from "./service.ts";

/** Runs the smoke test with this key. */
async function smoke(API_KEY: string, ...args: string[]) {
  const { status, output, errors } = await outcome(launch("npm", ["run", "smoke", "--", ...args], ".", { API_KEY }));
  return { status, output: output + errors };
}

it("passes against the service", async () => {
  const { status, output } = await smoke(API_KEY, `${ORIGIN}/v1/`);
  expect(output).toContain("The smoke test passed.\n");
  expect(output).not.toContain(API_KEY);
  expect(status).toBe(0);
});

it("prints its usage, and never a key", async () => {
  for (const { status, output } of [await smoke("s3cret"), await smoke("s3cret,\u{1f511}", `${ORIGIN}/v1`)]) {
    expect(output).toContain("usage: npm run smoke -- <base URL that ends in /v1>");
    expect(output).not.toContain("s3cret");
    expect(status).toBe(2);
  }
});

it("fails if anything else answers, and prints nothing that controls a terminal", async () => {
  const { origin, close } = await startServer((_, response) => response.end("\u001b[2J\u009b1m"));
  const { status, output } = await smoke("s3cret", `${origin}/v1`);
  close();
  expect(output).toMatch(/The smoke test failed: GET \/pets: expected 401 .*, got 200: \\u\{1b\}\[2J\\u\{9b\}1m\n/);
  expect(status).toBe(1);
});

it("npm run test:deployed rejects production, and a key that the service does not have", async () => {
  const production = findService({ SMOKE_URL: "https://animal-store-production.example/v1", API_KEY: "key" });
  await expect(production).rejects.toThrow("is production, and these tests leave animals behind.");
  const wrong = findService({ SMOKE_URL: `${ORIGIN}/v1`, API_KEY: "other-key" });
  await expect(wrong).rejects.toThrow("The service does not have this key.");
});
