import { once } from "node:events";
import { createServer } from "node:http";
import { expect, it } from "vitest";
import { launch, outcome } from "../processes.ts";
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
  const server = createServer((_, response) => response.writeHead(200).end("\u001b[2J\u009b1m")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const hostile = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/v1`;
  const { status, output } = await smoke("s3cret", hostile);
  server.close();
  server.closeAllConnections();
  expect(output).toMatch(/The smoke test failed: GET \/pets: expected 401 .*, got 200: \\u\{1b\}\[2J\\u\{9b\}1m\n/);
  expect(status).toBe(1);
});

it("npm run test:deployed rejects production, and a key that the service does not have", async () => {
  const production = findService({ SMOKE_URL: "https://animal-store-production.example/v1", API_KEY: "key" });
  await expect(production).rejects.toThrow("is production, and these tests leave animals behind.");
  const wrong = findService({ SMOKE_URL: `${ORIGIN}/v1`, API_KEY: "other-key" });
  await expect(wrong).rejects.toThrow("The service does not have this key.");
});
