// The commands that ask a service about a key, and what the tests over HTTP require before they start.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { isForTests } from "../../scripts/environment.ts";
import { askAboutKey } from "../../scripts/key.ts";
import { CLOSED } from "../../src/http/maintenance.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { findForTests } from "./deployed-setup.ts";
import { API_KEY, ORIGIN } from "./service.ts";

const BASE = `${ORIGIN}/v1`;

/** Runs `npm run key` with this key in the environment. */
async function runKey(API_KEY: string, ...args: string[]) {
  const command = ["run", "--silent", "key", "--", ...args];
  const { status, output, errors } = await outcome(launch("npm", command, ".", { API_KEY }));
  return { status, output: output + errors };
}

describe("npm run key", () => {
  it("names the secret and the caller of a key, and never the key", async () => {
    const { status, output } = await runKey(API_KEY, `${BASE}/`);
    expect(output).toContain("The API key is that of the environment variable API_KEY.\n");
    expect(output).toMatch(
      /^The service is open to this key: secret API_KEY, caller API_KEY \(http.*\/v1, key [0-9a-f]{8}…\)$/m,
    );
    expect(output).not.toContain(API_KEY);
    expect(status).toBe(0);
  });

  it("sends a key that is too short to be valid, and tells which it was by its digits", async () => {
    const { status, output } = await runKey("short", BASE);
    // printf short | sha256sum
    expect(output).toContain(`The service does not have this key (${BASE}, key f9b0078b…)\n`);
    expect(status).toBe(1);
  });

  it("prints its usage if an argument is wrong or, without a terminal, the key is missing", async () => {
    for (const [key, args, message] of [
      ["s3 cret", [BASE], "An API key consists of letters, digits and "],
      ["s3cret", [BASE, "other"], "Name one base URL."],
      [
        "s3cret",
        ["http://example.com/v1"],
        "The base URL must be an https URL, or an http URL of localhost, that ends in /v1.",
      ],
      ["", [BASE], "Enter an API key on a terminal, or set the environment variable API_KEY."],
    ] as const) {
      const { status, output } = await runKey(key, ...args);
      expect(output).toContain(message);
      expect(output).toContain("usage: npm run key -- <base URL that ends in /v1>");
      expect(output).not.toMatch("s3");
      expect(status).toBe(2);
    }
  });

  // With the command `script` of Linux.
  it.skipIf(process.platform !== "linux")("asks for the key on a terminal, without showing it", async () => {
    const onTerminal = async (typed: string) => {
      const command = `node scripts/key.ts ${BASE}`;
      const env = { ...process.env, API_KEY: "" };
      const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { env });
      let output = "";
      child.stdout.on("data", (data) => {
        output += data;
        if (String(data).includes("API key (not shown): ")) child.stdin.write(typed);
      });
      const [status] = await once(child, "close");
      return { status, output };
    };
    const { status, output } = await onTerminal(` ${API_KEY}\n`);
    expect(output).toContain("The service is open to this key: ");
    expect(output).not.toContain(API_KEY);
    expect(status).toBe(0);
    // Ctrl-C, and Ctrl-D.
    for (const typed of ["s3c\u0003", "\u0004"]) expect((await onTerminal(typed)).status).toBe(130);
  });

  const KEY = "s3/cret==";
  it.each([
    [
      "a closed service",
      503,
      CLOSED,
      "closed",
      "The service is closed for maintenance: secret API_KEY_SHOP__2, caller API_KEY_SHOP (",
    ],
    [
      "a different 503",
      503,
      "later",
      "other",
      "Unexpected response: status 503, secret API_KEY_SHOP__2, caller API_KEY_SHOP, later (",
    ],
    ["control characters", 500, "\u001b[2J\u009b\r\n1m", "other", "API_KEY_SHOP, \\u{1b}[2J\\u{9b} 1m ("],
    ["a response with the key", 500, `${KEY} ${encodeURIComponent(KEY)}`, "other", "API_KEY_SHOP, <key> <key> ("],
    ["a long response", 500, "x".repeat(10_000), "other", /^.{200} \(http/],
    ["an endless response", 500, "x".repeat(2_000_000), "other", "The response is larger than 1 MB."],
  ])("does not trust what answers: %s", async (_, status, body, state, line) => {
    const { origin, close } = await startServer((_, response) =>
      response.writeHead(status, { "API-Key-Name": "API_KEY_SHOP__2" }).end(body),
    );
    const answer = await askAboutKey(`${origin}/v1`, KEY);
    close();
    expect(answer.state).toBe(state);
    expect(answer.line).toMatch(line);
    expect(await askAboutKey(`${origin}/v1`, KEY)).toMatchObject({
      state: "other",
      line: /The service does not answer: /,
    });
  });
});

describe("npm run test:deployed", () => {
  it.each([
    "https://api.example.com/v1",
    "https://api.acme-staging.workers.dev/v1",
    "https://animal-store-production-staging.example.com/v1",
    "https://mystaging.example.com/v1",
  ])("rejects %s, which is not known to be for tests", async (SMOKE_URL) => {
    await expect(findForTests({ SMOKE_URL })).rejects.toThrow("is not known to be for tests.");
  });

  it("accepts staging and this machine", () => {
    for (const base of ["https://eu-staging-2.example.com/v1", BASE]) expect(isForTests(base)).toBe(true);
  });
});
