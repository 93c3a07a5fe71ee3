// The command that asks a service about a key, and what the tests over HTTP require before they start.

import { describe, expect, it, vi } from "vitest";
import { isForTests, parseBase } from "../../scripts/environment.ts";
import { askAboutKey } from "../../scripts/key.ts";
import { readKey } from "../../scripts/read-key.ts";
import { launch, onTerminal, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { requireTestService } from "./deployed-setup.ts";
import { API_KEY, ORIGIN } from "./service.ts";

const BASE = `${ORIGIN}/v1`;
const CLOSED = '{"code":"closed"}';
const LONG_NAME = { "API-Key-Name": `API_KEY${"__1".repeat(40)}` };
const NAMED = { "API-Key-Name": "API_KEY_SHOP__2__3" };

describe("npm run key", () => {
  it("names the secret and the caller of a key, and never the key", async () => {
    const run = (key: string) =>
      outcome(launch("npm", ["run", "--silent", "key", "--", `${BASE}/`], ".", { API_KEY: key }));
    const { status, output, errors } = await run(API_KEY);
    // A deployment may be tested with API_KEY_ALICE__2, the second key of the caller API_KEY_ALICE.
    const line =
      /^The service is open to this key: status 200, secret (API_KEY\w*?)(__\d+)?, caller \1 \(\S+, SHA-256 \w{8}…\)$/m;
    expect(output).toMatch(line);
    expect(errors).toBe("Using the API key in the environment variable API_KEY.\n");
    expect(status).toBe(0);
    // printf short | sha256sum
    const unknown = `The service does not have this key: status 401, no secret (${BASE}, SHA-256 f9b0078b…)\n`;
    expect(await run("short")).toMatchObject({ status: 1, output: unknown });
  });

  // With the command `script` of Linux.
  it.skipIf(process.platform !== "linux")("asks for the key on a terminal, without showing it", async () => {
    const type = (typed: string) =>
      onTerminal(`node scripts/key.ts ${BASE}`, { "API key (not shown): ": typed }, ".", { API_KEY: "" });
    const { status, output } = await type(` ${API_KEY}\n`);
    expect(output).toContain("The service is open to this key: ");
    expect(output).not.toContain(API_KEY);
    expect(status).toBe(0);
    expect((await type("s3c\u0003")).status).toBe(130); // Ctrl-C
  });

  const WHOSE = "secret API_KEY_SHOP__2__3, caller API_KEY_SHOP";
  it.each([
    [200, NAMED, "x", "open", `The service is open to this key: status 200, ${WHOSE}`],
    [503, NAMED, CLOSED, "closed", `The service is closed for maintenance: status 503, ${WHOSE}`],
    [503, NAMED, "null", "unexpected", `Unexpected response: status 503, ${WHOSE}`],
    [503, NAMED, "closed", "unexpected", `Unexpected response: status 503, ${WHOSE}`],
    [503, {}, CLOSED, "unexpected", "Unexpected response: status 503, no secret"],
    [200, LONG_NAME, "x", "unexpected", "Unexpected response: status 200, no secret"],
    [200, { "API-Key-Name": "\u009b2J" }, "x", "unexpected", "Unexpected response: status 200, no secret"],
    [401, { "WWW-Authenticate": "Basic" }, "x", "unexpected", "Unexpected response: status 401, no secret"],
    [302, { Location: BASE }, "", "unexpected", "Unexpected response: status 302, no secret"],
  ])("does not trust what answers with %i, %j and the body %s", async (status, headers, body, state, text) => {
    const { origin, close } = await startServer((_, response) => response.writeHead(status, headers).end(body));
    const base = `${origin}/v1`;
    expect(await askAboutKey(base, "short")).toEqual({ state, line: `${text} (${base}, SHA-256 f9b0078b…)` });
    close();
    await expect(askAboutKey(base, "short")).rejects.toThrow(`${base} does not answer: `);
  });
});

it("an API key is that of the variable, can be sent, and is required without a terminal", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  expect(await readKey("API key", { API_KEY: " key\n" })).toBe("key");
  await expect(readKey("API key", { API_KEY: "two words" })).rejects.toThrow(/^(?!.*two)/);
  const where = "enter it on a terminal, or set the environment variable API_KEY.";
  await expect(readKey("API key", {})).rejects.toThrow(`An API key is required: ${where}`);
});

it("a base URL is https, except on this machine", () => {
  for (const base of ["http://api.example.com/v1", "http://localhost.example.com/v1", "https://api.example.com"]) {
    expect(() => parseBase("SERVICE_URL", base)).toThrow("SERVICE_URL must be an https URL");
  }
});

it.each([
  ["http://127.0.0.1:1/v1", true],
  ["http://[::1]/v1", true],
  ["https://animal-store-staging.acme.workers.dev/v1", true],
  ["https://production-staging.example.com/v1", false],
  ["https://animal-store-production.acme.workers.dev/v1", false],
  ["https://animal-store-staging.acme.workers.dev.example.com/v1", false],
  ["https://animal-store-staging.a.b.workers.dev/v1", false],
])("tests may leave animals at %s: %s", async (SERVICE_URL, expected) => {
  expect(isForTests(SERVICE_URL)).toBe(expected);
  if (expected) return;
  await expect(requireTestService("deployed", { SERVICE_URL })).rejects.toThrow("is not known to be for tests.");
});

it("only the smoke test runs while the service is closed, and none with a key that it does not have", async () => {
  const { origin, close } = await startServer((_, response) => response.writeHead(503, NAMED).end(CLOSED));
  const service = { SERVICE_URL: `${origin}/v1`, API_KEY: "a-key" };
  expect(await requireTestService("smoke", service)).toMatchObject({ origin, isClosed: true });
  await expect(requireTestService("deployed", service)).rejects.toThrow("The service is closed for maintenance");
  close();
  const wrong = requireTestService("smoke", { SERVICE_URL: BASE, API_KEY: "wrong" });
  await expect(wrong).rejects.toThrow("The service does not have this key");
});
