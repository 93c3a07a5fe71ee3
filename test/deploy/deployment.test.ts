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
let interruption: AbortController;
let output = "";
beforeEach(async () => {
  account = await startAccount();
  interruption = new AbortController();
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

/** Deploys to staging, and returns whether that succeeded. `API_KEY` is not used with a secrets file. */
function deploy(flags: string[] = [], API_KEY = "key"): Promise<boolean> {
  const asked = parseArguments(["staging", "--wait=0", ...flags], { API_KEY, SMOKE_URL: account.base });
  return runDeployment(asked, interruption.signal, account.run, 1);
}

const interrupt = () => interruption.abort(new Error("Interrupted by SIGINT."));
const lastLine = () => output.trim().split("\n").at(-1);
const changes = () => account.commands.filter((command) => command.startsWith("versions deploy"));

describe("the traffic", () => {
  it("moves to the new version after the test at 0%", async () => {
    expect(await deploy()).toBe(true);
    expect(lastLine()).toBe(`animal-store-staging: version new serves all requests, at ${account.base}.`);
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
      version === "new" && request === "GET /pets/1" ? [500, "\u001b[2J\n::error::"] : undefined;
    expect(await deploy()).toBe(false);
    expect(output).toContain("GET /pets/1: expected 200 ");
    expect(output).toContain("got 500: \\u{1b}[2J ::error::\n\nstaging is not up to date.\n");
    expect(lastLine()).toBe("Traffic: current@100%. See the last step above.");
    expect(changes()).toEqual(["versions deploy current@100% new@0%", "versions deploy current@100%"]);
  });

  it("goes back if the operator interrupts the test", async () => {
    account.onRequest = (version) => {
      if (version === "new") interrupt();
      return undefined;
    };
    expect(await deploy()).toBe(false);
    expect(output).toContain("Interrupted by SIGINT.\n\nstaging is not up to date.");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it("goes back if the version does not answer at 100%", async () => {
    account.onRequest = () => (account.traffic?.["new"] === 100 ? [503, ""] : undefined);
    expect(await deploy()).toBe(false);
    expect(changes()).toContain("versions deploy new@100%");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it.each([
    ["before the test", (moment: string) => moment === "versions upload", 0],
    ["during the test", (moment: string) => moment === "GET /nothing" && "new" in (account.traffic ?? {}), 1],
    ["after it has moved", () => account.traffic?.["new"] === 100, 2],
  ])("stays as it is if somebody else deploys %s", async (_, isMoment, count) => {
    account.versions.set("theirs", ["key"]);
    const deployTheirs = (moment: string) => {
      if (isMoment(moment)) account.traffic = { theirs: 100 };
    };
    account.onCommand = deployTheirs;
    account.onRequest = (_, request) => void deployTheirs(request);
    expect(await deploy()).toBe(false);
    expect(output.split("Somebody else has deployed meanwhile. Deploy again.").length).toBe(2);
    expect(lastLine()).toBe("Traffic: theirs@100%. See the last step above.");
    expect(changes().length).toBe(count);
  });

  it("is left alone if it is split", async () => {
    account.traffic = { current: 90, other: 10 };
    expect(await deploy()).toBe(false);
    expect(output).toContain("Somebody has split the traffic between versions by hand.");
    expect(lastLine()).toBe("Traffic: current@90%, other@10%. See the last step above.");
    expect(new Set(account.commands)).toEqual(new Set(["deployments status"]));
  });

  it("can be given back by hand if Wrangler fails", async () => {
    account.onRequest = (version) => (version === "new" ? [500, ""] : undefined);
    account.onCommand = (command) => {
      if ("new" in (account.traffic ?? {})) throw new WranglerFailed(command, "fetch failed");
    };
    expect(await deploy()).toBe(false);
    expect(output).toContain(`If this command cannot give all traffic back to the current version, run:
npx wrangler versions deploy current@100% --env staging\n`);
    expect(output).toContain("fetch failed\nwrangler deployments status failed.\n");
    expect(output).toContain("GET /pets: expected 401");
    expect(lastLine()).toMatch(/^Traffic: unknown \(npx wrangler deployments status --env staging\)\./);
  });
});

describe("the keys", () => {
  it("must include one that callers use, unless every caller is to be rejected", async () => {
    expect(await deploy(secrets("new,newer"))).toBe(false);
    expect(output).toMatch(
      /The current version does not have any key in .*secrets\.env\. Include one that callers use\.\nIf every caller must be rejected/,
    );
    expect(await deploy([], "wrong")).toBe(false);
    expect(output).toContain("does not have any key in API_KEY. Include one that callers use.\n\nstaging is");
    expect(account.commands).not.toContain("d1 migrations apply DB");
    expect(await deploy(secrets("key,new"))).toBe(true);
    expect(await deploy(secrets("stolen-no-more"))).toBe(false);
    expect(await deploy([...secrets("stolen-no-more"), "--revoke-all-keys"])).toBe(true);
  });

  it("may all be new if the service admits nobody anyway, but not if it does not answer", async () => {
    account.onRequest = (version) => (version === "current" ? [500, ""] : undefined);
    expect(await deploy(secrets("new"))).toBe(true);
    account.traffic = { current: 100 };
    account.onRequest = (version) => (version === "current" ? [503, ""] : undefined);
    expect(await deploy(secrets("new"))).toBe(false);
    expect(output.split("== ").at(-1)).toMatch(/^staging: Keys\n+.* answers 503: /);
    // A network in front of the service rejects requests without looking at their keys.
    account.onRequest = () => [429, "", { "Worker-Version": "" }];
    expect(await deploy(secrets("new"))).toBe(false);
    expect(output).toContain("is answered by something other than this service (429).");
  });

  it("are those of an unfinished deployment if there is no secrets file, and the message says so", async () => {
    account.versions.set("unfinished", ["next"]);
    expect(await deploy()).toBe(false);
    expect(output).toContain(
      "POST /pets: the service does not have this key (401). If callers use it, a deployment with a secrets file did not finish",
    );
    expect(output).not.toContain("Deploy with a secrets file next");
  });

  it("would go live with the next deployment once they are uploaded, and only then", async () => {
    account.onCommand = (command) => {
      if (command === "versions upload") throw new WranglerFailed(command, "The upload was refused.");
    };
    expect(await deploy(secrets("key,new"))).toBe(false);
    expect(output).not.toContain("Deploy with a secrets file next");
    account.onCommand = (command) => {
      if (command === "versions upload") interrupt();
    };
    expect(await deploy(secrets("key,new"))).toBe(false);
    expect(output).toContain("Deploy with a secrets file next: otherwise the keys of this version go live.");
  });
});

it("the first deployment needs a secrets file, and a database that does not exist yet for a location", async () => {
  account.traffic = undefined;
  account.databases = [];
  expect(await deploy()).toBe(false);
  expect(output).toContain("The Worker animal-store-staging does not exist yet. Run the first deployment yourself:");
  expect(lastLine()).toBe("Traffic: none. See the last step above.");
  expect(await deploy([...secrets("one"), "--location=weur"])).toBe(true);
  expect(account.commands).toContain("d1 create animal-store-staging");
  expect(await deploy(["--jurisdiction=eu"], "one")).toBe(false);
  expect(output).toContain("animal-store-staging already exists, and cannot be moved: leave out --jurisdiction=eu.");
});

describe("the smoke test", () => {
  it("says how to delete a different animal under its Idempotency-Key", async () => {
    account.onRequest = (_, request) => (request === "POST /pets" ? [422, ""] : undefined);
    expect(await deploy()).toBe(false);
    expect(output).toContain(`for a different animal (422).
The service is not broken. Delete that animal, and run the test again:
npx wrangler d1 execute DB --env staging --remote --command "DELETE FROM pets WHERE idempotency_key = 'smoke test'"`);
  });

  it("says that the version override was ignored", async () => {
    account.overrides = false;
    expect(await deploy()).toBe(false);
    expect(output).toContain(
      "is answered by version current (401) instead of version new. The version override was ignored.",
    );
    expect(account.traffic).toEqual({ current: 100 });
  });
});
