import { once } from "node:events";
import { createServer } from "node:http";
import { expect, it, vi } from "vitest";
import { smoke } from "../../scripts/deploy/smoke.ts";
import { launch, outcome } from "../processes.ts";
import { findService } from "./deployed-setup.ts";
import { send } from "./send.ts";
import { API_KEY, KEY, ORIGIN } from "./service.ts";

const base = `${ORIGIN}/v1`;

// The smoke test reports its progress.
vi.spyOn(console, "log").mockReturnValue();

/** Runs the command with this key. */
async function run(command: string[], API_KEY: string) {
  const [program = "", ...args] = command;
  const { status, output, errors } = await outcome(launch(program, args, ".", { API_KEY }));
  return { status, output: output + errors };
}

it("passes against the service, and never adds more than one animal", async () => {
  const { status, output } = await run(["npm", "run", "smoke", "--", `${base}/`], `other-key,${API_KEY}`);
  expect(output).toContain("ok: rejects requests that are not valid");
  expect(output).not.toContain(API_KEY);
  expect(status).toBe(0);
  await smoke({ base }, API_KEY, { until: Date.now() + 10_000, interval: 100 });
  const [, id] = output.match(/"id":(\d+)/) ?? [];
  const { text } = await send(`${base}/pets?limit=100&after=${Number(id) - 1}`, { headers: KEY });
  expect(text.split('"name":"Smoke test"').length).toBe(2);
});

it("prints its usage, and never a key", async () => {
  const command = [process.execPath, "scripts/deploy/smoke.ts"];
  // fetch would quote the second key in an error.
  const misused = await Promise.all([run(command, "s3cret"), run([...command, base], "s3cret,s3cret-\u{1f511}")]);
  for (const { status, output } of misused) {
    expect(output).toContain("usage: API_KEY=<key> npm run smoke -- <base URL");
    expect(output).not.toContain("s3cret");
    expect(status).toBe(2);
  }
});

it("fails if anything else answers, and prints nothing that controls a terminal", async () => {
  const server = createServer((_, response) => response.writeHead(200).end("\u001b[2J\u009b1m")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const hostile = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/v1`;
  const { status, output } = await run([process.execPath, "scripts/deploy/smoke.ts", hostile], "s3cret");
  server.close();
  server.closeAllConnections();
  expect(output).toMatch(/^The smoke test failed: GET \/pets: expected 401 .*, got 200: \\u\{1b\}\[2J\\u\{9b\}1m\n$/);
  expect(status).toBe(1);
});

it("npm run test:deployed rejects production, and a key that the service does not have", async () => {
  const production = findService({ SMOKE_URL: "https://animal-store-production.example/v1", API_KEY: "key" });
  await expect(production).rejects.toThrow("is production, and these tests leave animals behind.");
  const wrong = findService({ SMOKE_URL: base, API_KEY: "other-key" });
  await expect(wrong).rejects.toThrow(`${base} does not accept any key in API_KEY (401).`);
});
