// How a deployment waits for a version, and what the smoke test says of a wrong answer, against a server whose answers are
// given one by one.

import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { poll } from "../../scripts/deploy/poll.ts";
import { smoke, waitUntilReady } from "../../scripts/deploy/smoke.ts";
import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { startServer } from "../server.ts";

interface Scripted {
  status: number;
  version?: string;
  body?: string;
  headers?: Record<string, string>;
}

let answers: Scripted[] = [];
let requests: string[] = [];
let overrides: (string | undefined)[] = [];
/** Every request gets the next answer, and the last one stays. The body echoes the key, as a server for debugging may. */
const { origin, close } = await startServer(({ method, url, headers }, response) => {
  requests.push(`${method} ${url?.replace("/v1", "")}`);
  overrides.push(headers["cloudflare-workers-version-overrides"]?.toString());
  const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 500 };
  const challenge = headers.authorization ? INVALID_TOKEN : CHALLENGE;
  response.writeHead(answer.status, {
    "WWW-Authenticate": challenge,
    ...(answer.version && { "Worker-Version": answer.version }),
    ...answer.headers,
  });
  response.end(answer.body ?? `{"authorization": "${headers.authorization}"}`);
});
const base = `${origin}/v1`;
afterAll(close);
beforeEach(() => {
  [requests, overrides] = [[], []];
  // The smoke test reports its progress.
  vi.spyOn(console, "log").mockReturnValue();
});

const forever = { interval: 1, patience: Number.POSITIVE_INFINITY };
const now = { interval: 1, patience: 0 };
const unauthorized = { status: 401, body: '{"code":"unauthorized"}' };
const ready = { ...unauthorized, version: "new" };
const old = { ...unauthorized, version: "old" };

it("waits until only the version answers, several times in a row", async () => {
  answers = [{ status: 404 }, { status: 200, body: "soon" }, ready, ready, old, ready];
  await waitUntilReady({ base, version: "new", override: "store" }, forever);
  expect(overrides).toEqual(Array(10).fill('store="new"'));
});

it("stops when it is interrupted", async () => {
  answers = [old];
  const limits = { ...forever, signal: AbortSignal.timeout(20) };
  await expect(waitUntilReady({ base, version: "new" }, limits)).rejects.toThrow("aborted due to timeout");
});

it("repeats a request while it is answered 503 or not at all", async () => {
  answers = [{ status: 503 }, { status: 503 }, { status: 200 }];
  expect(await poll({ base }, "/pets", {}, forever)).toMatchObject({ request: "GET /pets", status: 200 });
  answers = [{ status: 503, body: "Bearer busy" }];
  await expect(poll({ base }, "/pets", {}, now)).rejects.toThrow(`${base}/pets answers 503: Bearer busy`);
  const nowhere = "http://127.0.0.1:1";
  await expect(poll({ base: nowhere }, "", {}, now)).rejects.toThrow(`${nowhere} does not answer`);
});

it("trusts nothing that answers: not its size, not its redirects", async () => {
  const mostly = "x".repeat(1_000_000);
  answers = [{ status: 200, body: mostly }];
  expect((await poll({ base }, "", {}, now)).text.length).toBe(1_000_000);
  answers = [{ status: 200, body: `${mostly}x` }];
  await expect(poll({ base }, "", {}, now)).rejects.toThrow("does not answer: the response is larger than 1 MB");
  answers = [{ status: 302, headers: { Location: `${base}/elsewhere` } }];
  expect((await poll({ base }, "", {}, now)).status).toBe(302);
  answers = [{ status: 403, body: "error code: 1010" }];
  await expect(poll({ base, version: "new" }, "", {}, now)).rejects.toThrow(
    'error code: 1010\nCloudflare may have rejected the request: see "Domain and rate limits" in docs/OPERATIONS.md.',
  );
});

describe("the smoke test", () => {
  const page = { status: 200, body: '[{"id":7,"name":"Rex"}]' };
  const Link = '<http://example.com/v1/pets?limit=1&after=7>; rel="next"';
  const error = (status: number, code: string) => ({ status, body: `{"code":"${code}"}` });
  const got = { status: 200, body: '{"id":7,"name":"Rex"}', headers: DEPRECATION_HEADERS };
  const rejected = [error(400, "bad_request"), error(415, "unsupported_media_type"), error(404, "not_found")];
  const passing: Scripted[] = [unauthorized, unauthorized, { ...page, headers: { Link } }, page, got, ...rejected];

  const sent = ["GET /pets", "GET /pets", "GET /pets?limit=1", "GET /pets?limit=1&after=7", "GET /pets/7"];
  sent.push("POST /pets", "POST /pets", "GET /nothing");

  it("reads, and sends requests that are rejected", async () => {
    answers = [...passing];
    await smoke({ base }, "key", now);
    expect(requests).toEqual(sent);
  });

  it.each(["not_found", "gone"])("passes if the store is empty, and getPet answers %s", async (code) => {
    const status = code === "gone" ? 410 : 404;
    const none = { ...error(status, code), headers: DEPRECATION_HEADERS };
    answers = [unauthorized, unauthorized, { status: 200, body: "[]" }, none, ...rejected];
    await smoke({ base }, "key", now);
    expect(requests).toContain("GET /pets/1");
  });

  it("names the request whose answer is wrong, whichever it is, and does not show the key", async () => {
    for (const [at, name] of sent.entries()) {
      for (const status of [200, 500]) {
        answers = passing.with(at, { status });
        const failure = await smoke({ base }, "s3cret", now).catch(({ message }: Error) => message);
        expect(failure).toMatch(/: expected .*, got \d+: {"authorization": "(Bearer <key>|Bearer wrong|undefined)"}$/);
        expect(failure?.startsWith(`${name}: `)).toBe(true);
      }
    }
    answers = passing.with(4, { ...got, headers: { ...DEPRECATION_HEADERS, Sunset: "" } });
    await expect(smoke({ base }, "key", now)).rejects.toThrow("GET /pets/7: expected 200 ");
  });
});
