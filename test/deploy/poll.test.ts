// How a deployment waits for a version, and what the smoke test says of a wrong answer, against the account of account.ts.

import type { RequestListener } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { poll } from "../../scripts/deploy/poll.ts";
import { smoke, waitUntilReady } from "../../scripts/deploy/smoke.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { type Account, startAccount } from "../account.ts";
import { startServer } from "../server.ts";

type Answer = ReturnType<Account["onRequest"]>;

let account: Account;
let base: string;
let requests: string[];
beforeEach(async () => {
  account = await startAccount();
  base = account.base;
  requests = [];
  account.onMoment = (request) => requests.push(request);
  // The smoke test reports its progress.
  vi.spyOn(console, "log").mockReturnValue();
});
afterEach(() => account[Symbol.asyncDispose]());

/** Every request gets the next answer, and the last one stays. Undefined is the account's own. */
function script(...answers: Answer[]): void {
  account.onRequest = () => (answers.length > 1 ? answers.shift() : answers[0]);
}

const forever = { interval: 1, patience: Number.POSITIVE_INFINITY };
const now = { interval: 1, patience: 0 };

it("waits until only the version answers, several times in a row", async () => {
  account.traffic = "current@100% new@0%";
  script([404, ""], [200, "soon"], undefined, undefined, [401, "", { "Worker-Version": "current" }], undefined);
  await waitUntilReady({ base, version: "new", override: "animal-store-staging" }, forever);
  expect(requests).toEqual(Array(10).fill("GET /pets"));
});

it("stops when it is interrupted", async () => {
  const limits = { ...forever, signal: AbortSignal.timeout(20) };
  await expect(waitUntilReady({ base, version: "new" }, limits)).rejects.toThrow("aborted due to timeout");
});

it("repeats a request while it is answered 503 or not at all", async () => {
  script([503, ""], [503, ""], [200, ""]);
  expect(await poll({ base }, "/pets", {}, forever)).toMatchObject({ request: "GET /pets", status: 200 });
  script([503, "Bearer busy"]);
  await expect(poll({ base }, "/pets", {}, now)).rejects.toThrow(`${base}/pets answers 503: Bearer busy`);
  const nowhere = "http://127.0.0.1:1";
  await expect(poll({ base: nowhere }, "", {}, now)).rejects.toThrow(`${nowhere} does not answer`);
});

it("gives up an answer that does not begin or does not end", { timeout: 5_000 }, async () => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  using _ = vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => timeout(milliseconds / 100));
  const begin: RequestListener = (_, response) => response.write("[");
  for (const respond of [undefined, begin]) {
    const { origin, close } = await startServer(respond);
    await expect(poll({ base: origin }, "", {}, now)).rejects.toThrow("does not answer: The operation was aborted");
    close();
  }
});

it("trusts nothing that answers: not its size, not its redirects", async () => {
  const mostly = "x".repeat(1_000_000);
  script([200, mostly]);
  expect((await poll({ base }, "", {}, now)).text.length).toBe(1_000_000);
  script([200, `${mostly}x`]);
  await expect(poll({ base }, "", {}, now)).rejects.toThrow("does not answer: the response is larger than 1 MB");
  script([302, "", { Location: `${base}/elsewhere` }]);
  expect((await poll({ base }, "", {}, now)).status).toBe(302);
  script([403, "error code: 1010"]);
  await expect(poll({ base, version: "new" }, "", {}, now)).rejects.toThrow(
    'error code: 1010\nCloudflare may have rejected the request: see "Domain and rate limits" in docs/OPERATIONS.md.',
  );
});

describe("the smoke test", () => {
  const sent = ["GET /pets", "GET /pets", "GET /pets?limit=1", "GET /pets?limit=1&after=7", "GET /pets/7"];
  sent.push("POST /pets", "POST /pets", "GET /nothing");

  it("reads, and sends requests that are rejected", async () => {
    await smoke({ base }, "key", now);
    expect(requests).toEqual(sent);
  });

  it.each(["not_found", "gone"])("passes if the store is empty, and getPet answers %s", async (code) => {
    const none: Answer = [code === "gone" ? 410 : 404, `{"code":"${code}"}`, DEPRECATION_HEADERS];
    script(undefined, undefined, [200, "[]"], none, undefined);
    await smoke({ base }, "key", now);
    expect(requests).toContain("GET /pets/1");
  });

  it("names the request whose answer is wrong, whichever it is, and does not show the key", async () => {
    for (const [at, name] of sent.entries()) {
      for (const status of [200, 500]) {
        // A server for debugging may return what it got.
        const own: Answer[] = Array(at).fill(undefined);
        script(...own, [status, `{"authorization": "Bearer ${at > 1 ? "key" : ""}"}`], undefined);
        const failure = await smoke({ base }, "key", now).catch(({ message }: Error) => message);
        expect(failure).toMatch(/: expected .*, got \d+: {"authorization": "Bearer (<key>)?"}$/);
        expect(failure?.startsWith(`${name}: `)).toBe(true);
      }
    }
    const Link = '<http://example.com/v1/pets?after=s3cret>; rel="next"';
    script(undefined, undefined, [200, "[", { Link }], [500, ""]);
    await expect(smoke({ base }, "s3cret", now)).rejects.toThrow("GET /pets?after=<key>: expected 200 ");
    script(...Array(4).fill(undefined), [200, '{"id":7,"name":"Rex"}', { ...DEPRECATION_HEADERS, Sunset: "" }]);
    await expect(smoke({ base }, "key", now)).rejects.toThrow("GET /pets/7: expected 200 ");
  });
});
