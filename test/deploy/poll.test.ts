// How a deployment waits for a version, and what the smoke test says of a wrong answer, against a server whose answers are
// given one by one.

import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeEach, expect, it, vi } from "vitest";
import { poll } from "../../scripts/deploy/poll.ts";
import { smoke, waitUntilReady } from "../../scripts/deploy/smoke.ts";
import { CHALLENGE } from "../../src/http/authentication.ts";

interface Scripted {
  status: number;
  version?: string;
  body?: string;
}

let answers: Scripted[] = [];
let overrides: (string | undefined)[] = [];
/** Every request gets the next answer, and the last one stays. The body echoes the key, as a server for debugging may. */
const server = createServer(({ headers }, response) => {
  overrides.push(headers["cloudflare-workers-version-overrides"]?.toString());
  const { status, version, body } = (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 500 };
  const challenge = headers.authorization ? `${CHALLENGE}, error="invalid_token"` : CHALLENGE;
  response.writeHead(status, { "WWW-Authenticate": challenge, ...(version && { "Worker-Version": version }) });
  response.end(body ?? `{"authorization": "${headers.authorization}"}`);
});
await once(server.listen(0, "127.0.0.1"), "listening");
const address = server.address();
const base = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/v1`;
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  overrides = [];
  // The smoke test reports its progress.
  vi.spyOn(console, "log").mockReturnValue();
});

const forever = { until: Number.POSITIVE_INFINITY, interval: 1 };
const now = { until: 0, interval: 1 };
const unauthorized = { status: 401, body: '{"code":"unauthorized"}' };
const ready = { ...unauthorized, version: "new" };
const old = { ...unauthorized, version: "old" };

it("waits until only the version answers, several times in a row", async () => {
  answers = [{ status: 404 }, { status: 200, body: "soon" }, ready, ready, old, ready];
  await waitUntilReady({ base, version: "new", override: "store" }, forever);
  expect(overrides).toEqual(Array(10).fill('store="new"'));
});

it("does not take anything but 401 for a version that is ready", async () => {
  answers = [{ status: 500, version: "new" }];
  const message =
    'GET /pets: expected 401 "code":"unauthorized" with WWW-Authenticate: Bearer realm="animal-store", got 500';
  await expect(waitUntilReady({ base, version: "new" }, now)).rejects.toThrow(message);
});

it("stops when it is interrupted", async () => {
  answers = [old];
  const limits = { ...forever, signal: AbortSignal.timeout(20) };
  await expect(waitUntilReady({ base, version: "new" }, limits)).rejects.toThrow("aborted due to timeout");
});

it("repeats a request while it is answered 503 or not at all", async () => {
  answers = [{ status: 503 }, { status: 503 }, { status: 200 }];
  expect(await poll({ base }, "/pets", {}, forever)).toMatchObject({ request: "GET /pets", status: 200 });
  answers = [{ status: 503, body: "busy" }];
  await expect(poll({ base }, "/pets", {}, now)).rejects.toThrow(`${base}/pets answers 503: busy`);
  const nowhere = "http://127.0.0.1:1";
  await expect(poll({ base: nowhere }, "", {}, now)).rejects.toThrow(`${nowhere} does not answer`);
});

it("reads an answer only up to 1 MB", async () => {
  const mostly = "x".repeat(1_000_000);
  answers = [{ status: 200, body: mostly }];
  expect((await poll({ base }, "", {}, now)).text.length).toBe(1_000_000);
  answers = [{ status: 200, body: `${mostly}x` }];
  await expect(poll({ base }, "", {}, now)).rejects.toThrow("does not answer: the response is larger than 1 MB.");
});

it.each([
  [[{ status: 200, body: "<html>" }], 'GET /pets: expected 401 "code":"unauthorized" with WWW-Authenticate: Bearer '],
  [[{ status: 401, body: '{"code":"no"}' }], 'realm="animal-store", got 401: {"code":"no"}'],
  [[unauthorized], "POST /pets: the service does not have this key (401)."],
  [[unauthorized, unauthorized, { status: 201, body: '{"id":1,"name":"Other"}' }], "POST /pets: expected 201 "],
  // The key is not shown, even if the server echoes it.
  [[unauthorized, unauthorized, { status: 500 }], 'got 500: {"authorization": "Bearer <key>"}'],
  [[unauthorized, unauthorized, { status: 503 }], '/pets answers 503: {"authorization": "Bearer <key>"}'],
])("the smoke test names the request whose answer is wrong: %j", async (scripted, message) => {
  answers = [...scripted];
  await expect(smoke({ base }, "s3cret", now)).rejects.toThrow(message);
});
