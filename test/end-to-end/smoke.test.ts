import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
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
  expect(output).toContain("The API key is that of the environment variable API_KEY.\n");
  expect(output.split("This key is the one in the secret API_KEY.\n").length).toBe(2);
  expect(output).toContain("The smoke test passed.\n");
  expect(output).not.toContain(API_KEY);
  expect(status).toBe(0);
});

it("prints its usage, and never a key; without a terminal, it needs API_KEY", async () => {
  for (const [key, args, message] of [
    ["s3cret,b", [`${ORIGIN}/v1`], "An API key has 1 to 512 characters: "],
    ["s3cret", [`${ORIGIN}/v1`, "other"], "The smoke test takes one base URL."],
    ["", [`${ORIGIN}/v1`], "Set the environment variable API_KEY to one of the service's API keys."],
  ] as const) {
    const { status, output } = await smoke(key, ...args);
    expect(output).toContain(message);
    expect(output).toContain("usage: npm run smoke -- <base URL that ends in /v1>");
    expect(output).not.toContain("s3cret");
    expect(status).toBe(2);
  }
});

/** Runs the smoke test on a terminal, with the command `script` of Linux, and types this when it asks. */
async function smokeOnTerminal(typed: string) {
  const command = `node scripts/deploy/smoke.ts ${ORIGIN}/v1`;
  const env = { ...process.env, API_KEY: "" };
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { env });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
    if (String(data).includes("API key (not shown): ")) child.stdin.write(typed);
  });
  const [status] = await once(child, "close");
  return { status, output };
}

it.skipIf(process.platform !== "linux")("asks for the key on a terminal, without showing it", async () => {
  const { status, output } = await smokeOnTerminal(` ${API_KEY}\n`);
  expect(output).toContain("The smoke test passed.");
  expect(output).not.toContain(API_KEY);
  expect(status).toBe(0);
  // Ctrl-C, and Ctrl-D.
  for (const typed of ["s3c\u0003", "\u0004"]) expect((await smokeOnTerminal(typed)).status).toBe(130);
});

it("fails if anything else answers, and prints nothing that controls a terminal", async () => {
  const { origin, close } = await startServer((_, response) => response.end("\u001b[2J\u009b1m"));
  const { status, output } = await smoke("s3cret", `${origin}/v1`);
  close();
  expect(output).toMatch(/The smoke test failed\. GET \/pets: expected 401 .*, got 200: \\u\{1b\}\[2J\\u\{9b\}1m\n/);
  expect(output).toMatch(/\nSee "All callers get errors" in docs\/OPERATIONS\.md\.\n$/);
  expect(status).toBe(1);
});

describe("npm run test:deployed", () => {
  it.each([
    "https://api.example.com/v1",
    "https://api.acme-staging.workers.dev/v1",
    "https://animal-store-production-staging.example.com/v1",
    "https://mystaging.example.com/v1",
  ])("rejects %s, which is not known to be for tests", async (address) => {
    await expect(findService(address, expect.fail)).rejects.toThrow("is not known to be for tests.");
  });

  it.each(["https://eu-staging-2.example.com/v1", `${ORIGIN}/v1`])("accepts %s", async (address) => {
    await expect(findService(address, () => Promise.reject(new Error("asked")))).rejects.toThrow("asked");
  });
});
