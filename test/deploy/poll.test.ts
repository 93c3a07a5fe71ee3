// How a deployment waits for a version, and what the smoke test says of a wrong answer, against the account of
// account.ts.

import type { RequestListener } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { poll } from "../../scripts/deploy/poll.ts";
import { ADA, REX, smoke, waitUntilReady } from "../../scripts/deploy/smoke.ts";
import { CHALLENGE } from "../../src/http/authentication.ts";
import { CLOSED } from "../../src/http/maintenance.ts";
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

/** The message with which the smoke test fails. */
const failureOf = (target: { base: string; key: string; isTrial?: boolean }): Promise<string> =>
  smoke(target, now).then(
    () => "",
    ({ message }: Error) => message,
  );

it("waits until only the version answers, several times in a row", async () => {
  account.live.staging = "new";
  script([404, ""], [200, "soon"], undefined, undefined, [401, "", { "Worker-Version": "current" }], undefined);
  await waitUntilReady({ base, version: "new" }, forever);
  expect(requests).toEqual(Array(10).fill("GET /pets"));
});

it("repeats a request while it is answered 429, 503 or not at all", async () => {
  script([503, ""], [429, ""], [200, ""]);
  expect(await poll({ base }, "/pets", {}, forever)).toMatchObject({ request: "GET /pets", status: 200 });
  for (const status of [429, 503]) {
    script([status, "busy"]);
    await expect(poll({ base }, "/pets", {}, now)).rejects.toThrow(`${base}/pets answers ${status}: busy`);
  }
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
  script([403, "error code: 1010", { "Worker-Version": "" }]);
  await expect(poll({ base, version: "new" }, "", {}, now)).rejects.toThrow(
    'error code: 1010\nCloudflare may have rejected the request: see "Domain" in docs/OPERATIONS.md.',
  );
});

describe("the smoke test", () => {
  const sent = ["GET /pets", "GET /pets", "GET /pets?limit=1", "GET /pets?limit=1&after=1", "GET /pets/1"];
  sent.push("POST /pets", "POST /pets", "GET /nothing");
  const first = ["GET /pets", "GET /pets", ...Array(4).fill("POST /pets"), "GET /pets?limit=1"];
  first.push("GET /pets?limit=1&after=1", "GET /pets?status=sold", "GET /pets?status=pending", "GET /pets/1");
  const sentToTrial = [...first, ...sent.slice(2)];

  it("reads, and sends requests that are rejected", async () => {
    await smoke({ base, key: "key" }, now);
    expect(requests).toEqual(sent);
  });

  it.each([
    ["POST /pets", [201, REX.replace("9223372036854775807", "9223372036854776000")], "expected 201 "],
    ["POST /pets", [200, REX, { Location: "/v1/pets/1" }], "expected 201 "],
    ["POST /pets", [201, REX], "with Location: /v1/pets/1, got 201"],
    ["GET /pets", [401, '{"code":"unauthorized"', { "WWW-Authenticate": CHALLENGE }], 'error="invalid_token", got 401'],
    ["GET /pets?limit=1", [200, `[${REX},${ADA}]`], "expected 200 "],
    ["GET /pets?limit=1&after=1", [200, `[${REX}]`], "expected 200 "],
    ["GET /pets?limit=1", [200, `[${REX}]`], "there is no Link to the next page."],
    ["GET /pets?status=sold", [200, `[${REX},${ADA}]`], "expected 200 "],
    ["GET /pets/1", [404, '{"code":"not_found"', DEPRECATION_HEADERS], "expected 200 "],
  ] as const)("of a trial Worker adds animals, and finds a wrong answer to %s: %j", async (wrong, answer, message) => {
    const trial = { base, key: "key", isTrial: true };
    await smoke(trial, now);
    expect(requests).toEqual(sentToTrial);
    account.onRequest = (_, request) => (wrong === request ? [...answer] : undefined);
    expect(await failureOf(trial)).toContain(message);
  });

  it.each(["not_found", "gone"])("passes if the store is empty, and getPet answers %s", async (code) => {
    const none: Answer = [code === "gone" ? 410 : 404, `{"code":"${code}"}`, DEPRECATION_HEADERS];
    script(undefined, undefined, [200, "[]"], none, undefined);
    await smoke({ base, key: "key" }, now);
    expect(requests).toContain("GET /pets/1");
  });

  it.each([
    [false, sent],
    [true, sentToTrial],
  ])("names the request whose answer is wrong, whichever it is (isTrial: %j)", async (isTrial, names) => {
    for (const [at, name] of names.entries()) {
      for (const status of [200, 500]) {
        // A server for debugging may return what it got.
        const own: Answer[] = Array(at).fill(undefined);
        script(...own, [status, `{"authorization": "Bearer ${at > 1 ? "s3cret" : ""}"}`], undefined);
        const failure = await failureOf({ base, key: "s3cret", isTrial });
        // Of a success only the start, because it can have animals.
        expect(failure).toMatch(
          /: expected .*, got (500: {"authorization": "Bearer (<key>)?"}|200: {"authorization": "B)$/,
        );
        expect(failure.startsWith(`${name}: `)).toBe(true);
      }
    }
  });

  it("finds a header that is missing", async () => {
    script(...Array(4).fill(undefined), [200, '{"id":1,"name":"Rex"}', { ...DEPRECATION_HEADERS, Sunset: "" }]);
    expect(await failureOf({ base, key: "key" })).toContain("GET /pets/1: expected 200 ");
  });

  it.each([500, 503])("hides the key in what the server has sent, and shortens it: %d", async (status) => {
    const key = "s3/cret==";
    for (const echo of [key, encodeURIComponent(key), "x".repeat(900_000)]) {
      const Link = `<http://example.com/v1/pets?after=${echo.slice(0, 9000)}>; rel="next"`;
      script(undefined, undefined, [200, "[", { Link }], [status, echo]);
      const failure = await failureOf({ base, key });
      expect(failure).toContain("/pets?after=");
      expect(failure).not.toMatch(/s3|cret/);
      expect(failure.length).toBeLessThan(1_000);
    }
    const id = "9".repeat(9_000);
    script(undefined, undefined, [200, `[{"id":${id},`], [status, id]);
    expect((await failureOf({ base, key })).length).toBeLessThan(1_000);
  });

  it("says at once that the service is closed, or that it does not have the key", async () => {
    script(undefined, undefined, [503, `{"message":"${CLOSED}"}`]);
    await smoke({ base, key: "key" }, { interval: 1, patience: 1_000 }).catch(({ message }: Error) =>
      expect(message).toBe("The service is closed for maintenance."),
    );
    expect(requests.length).toBe(3);
    script(undefined, [
      401,
      '{"code":"unauthorized"',
      { "WWW-Authenticate": 'Bearer realm="animal-store", error="invalid_token"' },
    ]);
    expect(await failureOf({ base, key: "key" })).toBe("The service does not have this key.");
  });

  it("tells which secret the key is, if a response names one", async () => {
    const named = async (status: number, secret: string) => {
      const names: string[] = [];
      const header = { "API-Key-Name": secret };
      // The second one is to a wrong key, and does not count.
      script([401, "", header], [401, "", header], [status, "", header]);
      const target = { base, key: "s3cret", onSecret: (name: string) => names.push(name) };
      for (const Authorization of ["", "Bearer wrong", "Bearer s3cret"]) {
        await poll(target, "/pets", { headers: { Authorization } }, now).catch(() => {});
      }
      return names;
    };
    for (const status of [200, 500, 503]) expect(await named(status, "API_KEY_ALICE")).toEqual(["API_KEY_ALICE"]);
    expect(await named(200, "MAINTENANCE")).toEqual([]);
    expect(await named(200, "API_KEY_s3cret")).toEqual(["API_KEY_<key>"]);
  });
});
