// What a deployment decides: which traffic it changes and gives back, which keys it rejects, and what it says. Only Wrangler
// and the service are replaced (account.ts).

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseArguments } from "../../scripts/deploy/arguments.ts";
import { deploy as runDeployment } from "../../scripts/deploy/deploy.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";
import { type Account, startAccount } from "./account.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));

let account: Account;
let output = "";
beforeEach(async () => {
  account = await startAccount();
  output = "";
  for (const method of ["log", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((text) => {
      output += `${text}\n`;
    });
  }
});
afterEach(() => account[Symbol.asyncDispose]());

/** The flag for a secrets file with these keys. */
function secrets(keys: string): string[] {
  writeFileSync(join(folder, "secrets.env"), `API_KEY=${keys}\n`);
  return ["--secrets-file", join(folder, "secrets.env")];
}

/** Deploys to staging, and returns whether that succeeded, and the last line. `API_KEY` is not used with a secrets file. */
async function deploy({
  flags = [] as string[],
  API_KEY = "key",
  signal = new AbortController().signal,
  wait = "5",
} = {}) {
  const asked = parseArguments(["staging", "--wait", wait, ...flags], { API_KEY, SMOKE_URL: account.base });
  const succeeded = await runDeployment(asked, signal, account.run, 1);
  return { succeeded, last: output.trim().split("\n").at(-1) };
}

const trafficSet = () => account.commands.filter((command) => command.startsWith("versions deploy"));

describe("the traffic", () => {
  it("moves to the new version after the test at 0%", async () => {
    const { succeeded, last } = await deploy();
    expect(last).toBe(`animal-store-staging: version new serves all requests, at ${account.base}.`);
    expect(succeeded).toBe(true);
    expect(account.commands.filter((command) => command !== "deployments status")).toEqual([
      "triggers deploy",
      "d1 migrations apply DB",
      "versions upload",
      "versions deploy current@100% new@0%",
      "versions deploy new@100%",
    ]);
  });

  it("goes back if the version fails the test, and what it answered cannot control the terminal", async () => {
    account.onRequest = (version, request) =>
      version === "new" && request === "GET /pets/1" ? [500, "\u001b[2J"] : undefined;
    const { succeeded, last } = await deploy();
    expect(succeeded).toBe(false);
    expect(output).toContain("GET /pets/1: expected 200 ");
    expect(output).toContain("got 500: \\u{1b}[2J\n\nstaging is not up to date.\n");
    expect(last).toBe("Traffic: current@100%. See the last step above.");
    expect(trafficSet()).toEqual(["versions deploy current@100% new@0%", "versions deploy current@100%"]);
  });

  it("goes back if the operator interrupts the test", async () => {
    const interruption = new AbortController();
    account.onRequest = (version) => {
      if (version === "new") interruption.abort(new Error("Interrupted by SIGINT."));
      return undefined;
    };
    expect(await deploy({ signal: interruption.signal })).toMatchObject({ succeeded: false });
    expect(output).toContain("Interrupted by SIGINT.\n\nstaging is not up to date.");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it("goes back if the version does not answer at 100%", async () => {
    account.onRequest = (version) => (account.traffic?.[version] === 100 && version === "new" ? [503, ""] : undefined);
    expect(await deploy({ wait: "0" })).toMatchObject({ succeeded: false });
    expect(trafficSet()).toContain("versions deploy new@100%");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it.each([
    ["before the test", (moment: string) => moment === "versions upload", 0],
    ["during the test", (moment: string) => moment === "GET /nothing", 1],
    ["after it has moved", () => account.traffic?.["new"] === 100, 2],
  ])("stays as it is if somebody else deploys %s", async (_, isMoment, changes) => {
    const theirs = { theirs: 100 };
    account.versions.set("theirs", ["key"]);
    account.onCommand = (command) => {
      if (isMoment(command)) account.traffic = theirs;
    };
    account.onRequest = (version, request) => {
      if (version === "new" && isMoment(request)) account.traffic = theirs;
      return undefined;
    };
    expect(await deploy({ wait: "0" })).toEqual({
      succeeded: false,
      last: "Traffic: theirs@100%. See the last step above.",
    });
    expect(account.traffic).toEqual(theirs);
    expect(trafficSet().length).toBe(changes);
  });

  it("is left alone if it is split", async () => {
    account.traffic = { current: 90, other: 10 };
    expect(await deploy()).toEqual({
      succeeded: false,
      last: "Traffic: current@90%, other@10%. See the last step above.",
    });
    expect(output).toContain("Somebody has split the traffic between versions by hand.");
    expect(account.commands.every((command) => command === "deployments status")).toBe(true);
  });

  it("can be given back by hand if Wrangler fails", async () => {
    account.onRequest = (version) => (version === "new" ? [500, ""] : undefined);
    account.onCommand = (command) => {
      if ("new" in (account.traffic ?? {})) throw new WranglerFailed(command, "fetch failed");
    };
    expect(await deploy()).toMatchObject({
      last: "Traffic: unknown (npx wrangler deployments status --env staging). See the last step above.",
    });
    expect(output).toContain(`If this command cannot give all traffic back to the current version, run:
npx wrangler versions deploy current@100% --env staging\n`);
    expect(output).toContain("fetch failed\nwrangler deployments status failed.\n");
    expect(output).toContain("GET /pets: expected 401");
  });
});

describe("the keys", () => {
  const UNKNOWN = /The current version does not have any key in .*secrets\.env: callers use different keys\./;

  it("must include one that callers use, unless every caller is to be rejected", async () => {
    expect(await deploy({ flags: secrets("new,newer") })).toMatchObject({ succeeded: false });
    expect(output).toMatch(UNKNOWN);
    expect(await deploy({ API_KEY: "wrong" })).toMatchObject({ succeeded: false });
    expect(output).toContain("does not have any key in API_KEY");
    expect(account.commands).not.toContain("d1 migrations apply DB");
    expect(await deploy({ flags: secrets("key,new") })).toMatchObject({ succeeded: true });
    expect(await deploy({ flags: secrets("stolen-no-more") })).toMatchObject({ succeeded: false });
    expect(await deploy({ flags: [...secrets("stolen-no-more"), "--revoke-all-keys"] })).toMatchObject({
      succeeded: true,
    });
  });

  it("may all be new if the service admits nobody anyway, but not if it does not answer", async () => {
    account.onRequest = (version) => (version === "current" ? [500, ""] : undefined);
    expect(await deploy({ flags: secrets("new") })).toMatchObject({ succeeded: true });
    account.traffic = { current: 100 };
    account.onRequest = (version) => (version === "current" ? [503, ""] : undefined);
    expect(await deploy({ flags: secrets("new"), wait: "0" })).toMatchObject({ succeeded: false });
    expect(output.split("== ").at(-1)).toMatch(/^staging: Keys\n+.* answers 503: /);
  });

  it("are those of an unfinished deployment if there is no secrets file, and the message says so", async () => {
    account.versions.set("unfinished", ["next"]);
    expect(await deploy()).toMatchObject({ succeeded: false });
    expect(output).toContain(
      "POST /pets: the service does not have this key (401). If callers use it, a deployment with a secrets file did not finish",
    );
    expect(output).not.toContain("Deploy with a secrets file next");
  });

  it("would go live with the next deployment once they are uploaded, and only then", async () => {
    account.onCommand = (command) => {
      if (command === "versions upload") throw new WranglerFailed(command, "The upload was refused.");
    };
    expect(await deploy({ flags: secrets("key,new") })).toMatchObject({ succeeded: false });
    expect(output).not.toContain("Deploy with a secrets file next");
    const interruption = new AbortController();
    account.onCommand = (command) => {
      if (command === "versions upload") interruption.abort(new Error("Interrupted by SIGINT."));
    };
    expect(await deploy({ flags: secrets("key,new"), signal: interruption.signal })).toMatchObject({
      succeeded: false,
    });
    expect(output).toContain("Deploy with a secrets file next: otherwise the keys of this version go live.");
  });
});

describe("the first deployment", () => {
  beforeEach(() => {
    account.traffic = undefined;
    account.databases = [];
  });

  it("needs a secrets file, and a database that does not exist yet for a location", async () => {
    expect(await deploy()).toMatchObject({ last: "Traffic: none. See the last step above." });
    expect(output).toContain("The Worker animal-store-staging does not exist yet. Run the first deployment yourself:");
    expect(await deploy({ flags: [...secrets("one"), "--location=weur"] })).toMatchObject({ succeeded: true });
    expect(account.commands).toContain("d1 create animal-store-staging");
    expect(await deploy({ API_KEY: "one", flags: ["--jurisdiction=eu"] })).toMatchObject({ succeeded: false });
    expect(output).toContain("animal-store-staging already exists, and cannot be moved: leave out --jurisdiction=eu.");
  });
});

describe("the smoke test", () => {
  it("says how to delete a different animal under its Idempotency-Key", async () => {
    account.onRequest = (_, request) => (request === "POST /pets" ? [422, ""] : undefined);
    expect(await deploy()).toMatchObject({ succeeded: false });
    expect(output).toContain(`for a different animal (422).
The service is not broken. Delete that animal, and run the test again:
npx wrangler d1 execute DB --env staging --remote --command "DELETE FROM pets WHERE idempotency_key = 'smoke test'"`);
  });

  it("says that the version override was ignored", async () => {
    account.overrides = false;
    expect(await deploy({ wait: "0" })).toMatchObject({ succeeded: false });
    expect(output).toContain(
      "is answered by version current (401) instead of version new. The version override was ignored.",
    );
    expect(account.traffic).toEqual({ current: 100 });
  });
});
