import { once } from "node:events";
import { createServer } from "node:http";
import { expect, inject, it, vi } from "vitest";
import { smoke } from "../../scripts/deploy/smoke.ts";
import { launch, outcome } from "../processes.ts";
import { KEY } from "./dev-server.ts";
import { send } from "./send.ts";

const base = `${inject("origin")}/v1`;

// The smoke test reports its progress.
vi.spyOn(console, "log").mockReturnValue();

/** Runs the command with this key. */
async function run(command: string[], API_KEY: string) {
  const [program = "", ...args] = command;
  const { status, output, errors } = await outcome(launch(program, args, ".", { API_KEY }));
  return { status, output: output + errors };
}

it("passes against the service, and never adds more than one animal", async () => {
  const { status, output } = await run(["npm", "run", "smoke", "--", `${base}/`], "other-key,local-key");
  expect(output).toContain("ok: rejects requests that are not valid");
  expect(output).not.toContain("local-key");
  expect(status).toBe(0);
  await smoke({ base }, "local-key", { until: Date.now() + 10_000, interval: 100 });
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
