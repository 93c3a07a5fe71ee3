// How a deployment waits for a version, and what the smoke test says of a wrong answer, against a server whose answers are
// given one by one.

import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { NoAnswer, poll, waitUntilReady } from "../../scripts/deploy/poll.ts";
import { smoke } from "../../scripts/deploy/smoke.ts";
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
});

const soon = () => ({ until: Date.now() + 200, interval: 1 });
const never = { until: Number.POSITIVE_INFINITY, interval: 1 };
const ready = { status: 401, version: "new" };

describe("waitUntilReady", () => {
  it("waits until only the version answers, several times in a row", async () => {
    answers = [{ status: 404 }, { status: 200, body: "soon" }, ready, ready, { status: 401, version: "old" }, ready];
    await waitUntilReady({ base, version: "new", override: "store" }, soon());
    expect(overrides).toEqual(Array(10).fill('store="new"'));
  });

  it("gives up on a version that does not answer, and says what does", async () => {
    answers = [{ status: 401, version: "old" }];
    const failure = await waitUntilReady({ base, version: "new" }, soon()).catch((failure) => failure);
    expect(failure).toBeInstanceOf(NoAnswer);
    expect(failure.message).toBe(`${base}/pets is answered by version old (401) instead of version new.`);
  });

  it("does not wait for a version that answers anything but 401", async () => {
    answers = [{ status: 500, version: "new" }];
    const message = "Version new answers 500 instead of 401 to a request without a key.";
    await expect(waitUntilReady({ base, version: "new" }, never)).rejects.toThrow(message);
  });

  it("stops when it is interrupted", async () => {
    answers = [{ status: 401, version: "old" }];
    const limits = { ...never, signal: AbortSignal.timeout(20) };
    await expect(waitUntilReady({ base, version: "new" }, limits)).rejects.toThrow("aborted due to timeout");
  });
});

describe("poll", () => {
  it("repeats a request while it is answered 503 or not at all", async () => {
    answers = [{ status: 503 }, { status: 503 }, { status: 200 }];
    expect(await poll({ base }, "/pets", {}, soon())).toMatchObject({ request: "GET /pets", status: 200 });
    answers = [{ status: 503, body: "busy" }];
    await expect(poll({ base }, "/pets", {}, soon())).rejects.toThrow(`${base}/pets answers 503: busy`);
    await expect(poll({ base: "http://127.0.0.1:1" }, "", {}, soon())).rejects.toThrow(
      "http://127.0.0.1:1 does not answer",
    );
  });
});

describe("an answer", () => {
  it("is read only up to 1 MB", async () => {
    const mostly = "x".repeat(1_000_000);
    answers = [{ status: 200, body: mostly }];
    expect((await poll({ base }, "", {}, soon())).text.length).toBe(1_000_000);
    answers = [{ status: 200, body: `${mostly}x` }];
    await expect(poll({ base }, "", {}, soon())).rejects.toThrow("does not answer: the response is larger than 1 MB.");
  });
});

describe("the smoke test", () => {
  // It reports its progress.
  vi.spyOn(console, "log").mockReturnValue();

  const unauthorized = { status: 401, body: '{"code":"unauthorized"}' };

  it.each([
    [[{ status: 200, body: "<html>" }], 'GET /pets: expected 401 "code":"unauthorized" with WWW-Authenticate: Bearer '],
    [[{ status: 401, body: '{"code":"no"}' }], 'realm="animal-store", got 401: {"code":"no"}'],
    [[unauthorized], "POST /pets: the service does not have this key (401)."],
    [[unauthorized, unauthorized, { status: 201, body: '{"id":1,"name":"Other"}' }], "POST /pets: expected 201 "],
    // The key is not shown, even if the server echoes it.
    [[unauthorized, unauthorized, { status: 500 }], 'got 500: {"authorization": "Bearer <key>"}'],
    [[unauthorized, unauthorized, { status: 503 }], '/pets answers 503: {"authorization": "Bearer <key>"}'],
  ])("names the request whose answer is wrong: %j", async (scripted, message) => {
    answers = [...scripted];
    await expect(smoke({ base }, "s3cret", soon())).rejects.toThrow(message);
  });
});
