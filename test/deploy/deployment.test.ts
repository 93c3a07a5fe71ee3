// What a deployment decides: which traffic it changes and gives back, which keys it rejects, and what it says. Only Wrangler
// and the service are replaced (account.ts).

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseArguments } from "../../scripts/deploy/arguments.ts";
import { prepareDeployment } from "../../scripts/deploy/deploy.ts";
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
  const prepared = prepareDeployment(asked, signal, account.run, 1);
  const succeeded = await prepared.deploy();
  return { succeeded, last: output.trim().split("\n").at(-1), unfinished: prepared.describeUnfinished() };
}

const migrations = "d1 migrations apply DB";
const theirs = { theirs: 100 };

describe("the traffic", () => {
  it("moves to the new version after the test at 0%", async () => {
    const { succeeded, last } = await deploy();
    expect(last).toBe(`animal-store-staging: version new serves all requests, at ${account.base}.`);
    expect(succeeded).toBe(true);
    expect(account.commands.filter((command) => command !== "deployments status")).toEqual([
      "triggers deploy",
      migrations,
      "versions upload",
      "versions deploy current@100 new@0",
      "versions deploy new@100",
    ]);
  });

  it("goes back if the version fails the test, and what it answered cannot control the terminal", async () => {
    account.onRequest = (version, request) =>
      version === "new" && request === "GET /pets/1" ? [500, "\u001b[2J"] : undefined;
    const { succeeded, last } = await deploy();
    expect(succeeded).toBe(false);
    expect(output).toContain("GET /pets/1: expected 200 ");
    expect(output).toContain("got 500: \\u{1b}[2J\n\nstaging is not up to date.\n");
    expect(last).toMatch(
      /^animal-store-staging: version current serves 100% of the requests; see the step "Smoke test .*" above\.$/,
    );
    expect(account.commands.filter((command) => command.includes("@"))).toEqual([
      "versions deploy current@100 new@0",
      "versions deploy current@100",
    ]);
  });

  it("goes back if the operator interrupts the test", async () => {
    const interruption = new AbortController();
    account.onRequest = (version) => {
      if (version === "new") interruption.abort(new Error("Interrupted by SIGINT."));
      return undefined;
    };
    const { succeeded, unfinished } = await deploy({ signal: interruption.signal });
    expect(succeeded).toBe(false);
    expect(output).toContain("Interrupted by SIGINT.\n\nstaging is not up to date.");
    expect(account.traffic).toEqual({ current: 100 });
    expect(unfinished).toMatch(
      /^The step "Smoke test of .*" may be unfinished: .*deployments status --env staging\. To give/,
    );
  });

  it("goes back if the version does not answer at 100%", async () => {
    account.onRequest = (version) => (account.traffic?.[version] === 100 && version === "new" ? [503, ""] : undefined);
    expect(await deploy({ wait: "0" })).toMatchObject({ succeeded: false });
    expect(account.commands).toContain("versions deploy new@100");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it.each([
    ["before the test", migrations, []],
    ["during the test", "versions deploy current@100 new@0", ["new@0"]],
    ["after the test", "GET /nothing", ["new@0"]],
    ["after it has moved", "versions deploy new@100", ["new@0", "new@100"]],
  ])("stays as it is if somebody else deploys %s", async (_, moment, sets) => {
    account.versions.set("theirs", ["key"]);
    account.onRequest = (version, request) => {
      if (version === "new" && request === moment) account.traffic = theirs;
      return undefined;
    };
    const { run } = account;
    account.run = async (args, env) => {
      const printed = await run(args, env);
      if (account.commands.at(-1) === moment) account.traffic = theirs;
      return printed;
    };
    const { succeeded, last } = await deploy({ wait: "0" });
    expect(succeeded).toBe(false);
    expect(account.traffic).toEqual(theirs);
    expect(last).toContain("version theirs serves 100% of the requests");
    const set = account.commands.filter((command) => command.includes("@"));
    expect(set.map((command) => command.split(" ").at(-1))).toEqual(sets);
  });

  it("is left alone if it is split, and is described if it cannot be given back", async () => {
    account.traffic = { current: 90, other: 10 };
    expect(await deploy()).toEqual({
      succeeded: false,
      last: "animal-store-staging: version current serves 90%, version other serves 10% of the requests; nothing was changed.",
      unfinished: "Nothing was changed.",
    });
    expect(output).toContain("Somebody has split the traffic between versions by hand.");

    account.traffic = { current: 100 };
    account.onRequest = (version) => (version === "new" ? [500, ""] : undefined);
    account.onCommand = (command) => {
      if (command === "versions deploy current@100") throw new WranglerFailed(command, "fetch failed");
    };
    await deploy();
    expect(output).toContain(`fetch failed
wrangler versions deploy current@100 failed. To give all traffic back to version current, run:
npx wrangler versions deploy current@100% --env staging\n`);
  });
});

describe("the keys", () => {
  const UNKNOWN = /The current version does not have any key in .*secrets\.env: callers use different keys\./;

  it("must include one that callers use, unless every caller is to be rejected", async () => {
    expect(await deploy({ flags: secrets("new,newer") })).toMatchObject({ succeeded: false });
    expect(output).toMatch(UNKNOWN);
    expect(await deploy({ API_KEY: "wrong" })).toMatchObject({ succeeded: false });
    expect(output).toContain("does not have any key in API_KEY");
    expect(account.commands).not.toContain(migrations);
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
    const { succeeded, last } = await deploy({ flags: secrets("new"), wait: "0" });
    expect(succeeded).toBe(false);
    expect(last).toContain('; see the step "Keys" above.');
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
    account.onCommand = (command) => {
      if (command.includes("@")) throw new WranglerFailed(command, "fetch failed");
    };
    expect(await deploy({ flags: secrets("key,new") })).toMatchObject({ succeeded: false });
    expect(output).toContain("Deploy with a secrets file next, even if it has the old keys");
  });
});

describe("the first deployment", () => {
  beforeEach(() => {
    account.traffic = undefined;
    account.databases = [];
  });

  it("needs a secrets file, and a database that does not exist yet for a location", async () => {
    expect(await deploy()).toMatchObject({
      last: "animal-store-staging: the Worker does not exist; nothing was changed.",
    });
    expect(output).toContain("The Worker animal-store-staging does not exist yet. Run the first deployment yourself:");
    expect(await deploy({ flags: [...secrets("one"), "--location=weur"] })).toMatchObject({ succeeded: true });
    expect(account.commands).toContain("d1 create animal-store-staging");
    expect(await deploy({ API_KEY: "one", flags: ["--jurisdiction=eu"] })).toMatchObject({ succeeded: false });
    expect(output).toContain(
      "animal-store-staging already exists, and its location cannot be changed: leave out --location",
    );
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
