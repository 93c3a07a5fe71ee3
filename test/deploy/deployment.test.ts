// What a deployment decides: which traffic it changes and gives back, which keys it rejects, and what it says. Only Wrangler
// and the service are replaced (account.ts).

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseArguments } from "../../scripts/deploy/arguments.ts";
import { deploy as runDeployment } from "../../scripts/deploy/deploy.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";
import { type Account, PET, startAccount } from "./account.ts";

/** For temporary files, and the outputs of a step in a workflow. */
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));
const GITHUB_OUTPUT = join(folder, "output");

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

/** Deploys to staging, and returns whether that succeeded. */
function deploy(flags: string[] = [], API_KEY = "key", progress = { signal: interruption.signal, next: "" }) {
  const asked = parseArguments(["staging", "--wait=0", ...flags], { API_KEY, SMOKE_URL: account.base, GITHUB_OUTPUT });
  return runDeployment(asked, progress, account.run, 1);
}

const interrupt = () => interruption.abort(new Error("Interrupted by SIGINT."));
const lastLine = () => output.trim().split("\n").at(-1);
const newKey = () => /^New key: (.*)$/m.exec(output)?.[1] ?? "";
const changes = () => account.commands.filter((command) => /^(versions deploy|rollback)/.test(command));

describe("the traffic", () => {
  it("moves to the new version after the test at 0%", async () => {
    expect(await deploy()).toBe(true);
    expect(lastLine()).toBe(`animal-store-staging: version new serves all requests, at ${account.base}.`);
    expect(account.commands.filter((command) => command !== "deployments status")).toEqual([
      "versions list",
      "triggers deploy",
      "d1 migrations apply DB",
      "versions upload",
      "versions deploy current@100% new@0%",
      "versions deploy new@100%",
    ]);
    expect(readFileSync(GITHUB_OUTPUT, "utf8")).toBe(`url=${account.base}\n`);
  });

  it("moves in the same way if the API does not list a version at 0%", async () => {
    account.listsZero = false;
    expect(await deploy()).toBe(true);
    account.traffic = { current: 100 };
    account.onRequest = (version) => (version.startsWith("new") ? [500, ""] : undefined);
    expect(await deploy()).toBe(false);
    expect(account.traffic).toEqual({ current: 100 });
  });

  it("goes back if the version fails the test, and what it answered cannot control the terminal", async () => {
    account.onRequest = (version, request) =>
      version === "new" && request === "GET /pets/1" ? [500, "\u001b[2J\n::error::"] : undefined;
    expect(await deploy()).toBe(false);
    expect(output).toContain("GET /pets/1: expected 200 ");
    expect(output).toContain("got 500: \\u{1b}[2J ::error::\n\nThe deployment of staging failed.\n");
    expect(lastLine()).toBe("Traffic: current@100%. See the last step above.");
    expect(changes()).toEqual(["versions deploy current@100% new@0%", "rollback current"]);
  });

  it("goes back if the operator interrupts the test", async () => {
    account.onRequest = (version) => {
      if (version === "new") interrupt();
      return undefined;
    };
    expect(await deploy()).toBe(false);
    expect(output).toContain("Interrupted by SIGINT.\n\nThe deployment of staging failed.");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it.each(["versions list", "triggers deploy", "GET /nothing", "d1 migrations apply DB", "versions upload"])(
    "does not move if the operator interrupts %s, and nothing follows",
    async (last) => {
      const after: string[] = [];
      const notice = (moment: string) => {
        if (interruption.signal.aborted) after.push(moment);
        if (moment === last) interrupt();
      };
      account.onCommand = notice;
      account.onRequest = (_, request) => void notice(request);
      expect(await deploy(["--new-key"])).toBe(false);
      // The last lines show the traffic, if anything has changed.
      expect(after.filter((moment) => moment !== "deployments status")).toEqual([]);
      expect(output.includes("New key: ")).toBe(/migrations|upload/.test(last));
      expect(account.traffic).toEqual({ current: 100 });
    },
  );

  it("goes back if the version does not answer at 100%", async () => {
    const progress = { signal: interruption.signal, next: "" };
    account.onRequest = () => {
      if (account.traffic?.["new"] !== 100) return undefined;
      // For a second Ctrl-C.
      expect(progress.next).toContain("npx wrangler rollback current --env staging < /dev/null");
      return [503, ""];
    };
    expect(await deploy([], "key", progress)).toBe(false);
    expect(progress.next).toBe("");
    expect(changes()).toContain("versions deploy new@100%");
    expect(account.traffic).toEqual({ current: 100 });
  });

  it.each([
    ["before the test", (moment: string) => moment === "versions upload", 0],
    ["during the test", (moment: string) => moment === "GET /nothing" && "new" in (account.traffic ?? {}), 1],
    ["after it has moved", () => account.traffic?.["new"] === 100, 2],
  ])("stays as it is if somebody else deploys %s", async (_, isMoment, count) => {
    // A version that they are still testing counts as well.
    const theirs = { current: 100, theirs: 0 };
    account.versions.set("theirs", ["key"]);
    const deployTheirs = (moment: string) => {
      if (isMoment(moment)) account.traffic = theirs;
    };
    account.onCommand = deployTheirs;
    account.onRequest = (_, request) => void deployTheirs(request);
    expect(await deploy()).toBe(false);
    expect(output.split("Somebody else has deployed meanwhile. Deploy again.").length).toBe(2);
    expect(lastLine()).toBe("Traffic: current@100%, theirs@0%. See the last step above.");
    expect(changes().length).toBe(count);
  });

  it("is left alone if it is split", async () => {
    account.traffic = { current: 90, other: 10 };
    expect(await deploy()).toBe(false);
    expect(output).toContain("Somebody has split the traffic between versions by hand.");
    expect(lastLine()).toBe("Nothing was migrated or uploaded.");
    expect(new Set(account.commands)).toEqual(new Set(["deployments status"]));
  });

  it.each([2, 5])("goes back although each command fails %d times, unless that is too often", async (failures) => {
    account.onRequest = (version) => (version === "new" ? [500, ""] : undefined);
    const tries: Record<string, number> = {};
    account.onCommand = (command) => {
      if (!("new" in (account.traffic ?? {})) && !tries["deployments status"]) return;
      tries[command] = (tries[command] ?? 0) + 1;
      if (tries[command] <= failures) throw new WranglerFailed(command, "502 Bad Gateway");
    };
    expect(await deploy()).toBe(false);
    const undo =
      "To give all traffic back to the current version:\nnpx wrangler rollback current --env staging < /dev/null";
    expect(output.includes(undo)).toBe(failures === 5);
    expect(output).toContain("GET /pets: expected 401");
    expect(account.traffic).toEqual(failures === 2 ? { current: 100 } : { current: 100, new: 0 });
  });

  it("moves before the test, and goes back after it, if Cloudflare refuses to deploy the current version with its keys", async () => {
    account.onCommand = (command) => {
      if (command.endsWith("@0%")) throw new WranglerFailed(command, "Secrets have changed: API_KEY [code: 10220]");
    };
    expect(await deploy()).toBe(false);
    expect(changes()).toEqual(["versions deploy current@100% new@0%", "rollback current"]);
    account.versions.delete("new");
    expect(await deploy(["--set-keys"], "key,next")).toBe(true);
    expect(changes().slice(2)).toEqual(["versions deploy current@100% new@0%", "versions deploy new@100%"]);
    account.traffic = { current: 100 };
    account.onRequest = (version, request) =>
      version !== "current" && request === "GET /pets/1" ? [500, ""] : undefined;
    expect(await deploy(["--set-keys"], "key,next")).toBe(false);
    expect(account.traffic).toEqual({ current: 100 });
  });
});

describe("the keys", () => {
  it("must include one of the current version, unless every caller is to be rejected", async () => {
    expect(await deploy([], "wrong")).toBe(false);
    expect(await deploy(["--new-key"], "wrong")).toBe(false);
    expect(await deploy(["--set-keys"], "wrong,wronger")).toBe(false);
    expect(
      output.split("None of the keys in API_KEY is a key of staging. Are they another environment's?").length,
    ).toBe(4);
    expect(output).toContain("The deployment of staging failed.\nNothing was migrated or uploaded.\n");
    expect(output).not.toMatch(/New key|--revoke|--set-keys/);
    expect(account.commands.filter((command) => /migrations|upload/.test(command))).toEqual([]);
    expect(await deploy(["--set-keys", "--revoke-all-keys"], "next")).toBe(true);
    expect([...account.versions]).toEqual([
      ["current", ["key"]],
      ["new", ["next"]],
    ]);
  });

  it("are those in API_KEY and a new one, which is printed before anything changes, once and with --new-key", async () => {
    account.onCommand = (command) => {
      if (/migrations|upload/.test(command)) expect(newKey()).toMatch(/^[\w-]{43}$/);
    };
    expect(await deploy(["--new-key"], "key,key")).toBe(true);
    expect(output.split(newKey()).length).toBe(2);
    expect(account.versions.get("new")).toEqual(["key", newKey()]);
    expect(account.messages.get("new")).toMatch(/^\[new keys: 2\] /);
    expect(await deploy()).toBe(true);
    expect(account.messages.get("new2")).toMatch(/^\[keys: 2\] /);
    // The same command again would revoke the new key.
    output = "";
    expect(await deploy(["--new-key"])).toBe(false);
    expect(output).toContain("API_KEY has 1 of the 2 keys of staging. --new-key needs all of them.");
    expect(await deploy(["--new-key"], "")).toBe(false);
    expect(output).toContain("animal-store-staging has keys already: set API_KEY to all of them");
    expect(newKey()).toBe("");
    expect(await deploy(["--new-key", "--revoke-all-keys"], "")).toBe(true);
    expect([...account.versions.values()].at(-1)).toEqual([newKey()]);
  });

  it("are not asked of a different environment", async () => {
    account.onRequest = () => [404, "", { "Worker-Version": "production" }];
    for (const flags of [[], ["--new-key"], ["--set-keys"]]) {
      expect(await deploy(flags)).toBe(false);
      expect(output).toMatch(/version production \(404\) instead of version current\. Is that staging's address\?/);
    }
    expect(account.commands.filter((command) => /migrations|upload/.test(command))).toEqual([]);
  });

  it("reach Wrangler in a file that only its owner can read, and that does not remain", async () => {
    vi.stubEnv("TMPDIR", folder);
    const files: string[] = [];
    const run: typeof account.run = (args, env) => {
      const [, file] = args.join(" ").match(/--secrets-file=(\S+)/) ?? [];
      if (file) {
        if (process.platform !== "win32") expect(statSync(file).mode & 0o777).toBe(0o600);
        files.push(readFileSync(file, "utf8"));
      }
      return account.run(args, env);
    };
    const asked = parseArguments(["staging", "--set-keys", "--wait=0"], { API_KEY: "key,b", SMOKE_URL: account.base });
    expect(await runDeployment(asked, { signal: interruption.signal, next: "" }, run, 1)).toBe(true);
    expect(files).toEqual(['{"API_KEY":"key,b"}']);
    expect(readdirSync(folder).filter((name) => name.includes("keys"))).toEqual([]);
    vi.unstubAllEnvs();
  });

  it("can be tested by any of those in API_KEY", async () => {
    expect(await deploy([], "key,wrong")).toBe(true);
  });

  it("can change if the current version does not say, but not if it does not answer as the service", async () => {
    account.onRequest = (version) => (version === "current" ? [500, ""] : undefined);
    expect(await deploy(["--set-keys"], "next")).toBe(true);
    account.traffic = { current: 100 };
    account.onRequest = (version) => (version === "current" ? [503, ""] : undefined);
    expect(await deploy(["--set-keys"], "next")).toBe(false);
    expect(output.split("== ").at(-1)).toMatch(/^staging: Keys\n+.* answers 503: /);
    account.onRequest = (version) =>
      version === "current" ? [500, "error code: 1101", { "Worker-Version": "" }] : undefined;
    expect(await deploy(["--set-keys"], "next")).toBe(false);
    expect(output).toContain("answers 500: version current did not answer as this service.");
    // Keys that stay reject nobody, so a broken version can be replaced.
    account.versions.delete("new");
    expect(await deploy()).toBe(true);
  });

  it("of a deployment that stopped are finished first, by the command in its last lines", async () => {
    account.onCommand = (command) => {
      if (command === "versions upload") interrupt();
    };
    expect(await deploy(["--new-key"])).toBe(false);
    const next = `To continue, with all keys that callers need, the new one included:\nAPI_KEY=… npm run deploy:staging -- --set-keys`;
    expect(output.trim().endsWith(next)).toBe(true);
    const all = `key,${newKey()}`;
    account.onCommand = () => {};
    interruption = new AbortController();
    output = "";
    for (const flags of [[], ["--new-key"]]) {
      expect(await deploy(flags)).toBe(false);
      expect(output).toContain(
        "A deployment that did not finish, or was rolled back, has changed the keys of staging.",
      );
    }
    expect(newKey()).toBe("");
    expect(await deploy(["--set-keys"], all)).toBe(true);
    expect(await deploy([], all)).toBe(true);
  });

  it("of a deployment that stopped can all be revoked", async () => {
    account.onCommand = (command) => {
      if (command === "versions upload") interrupt();
    };
    expect(await deploy(["--new-key", "--revoke-all-keys"], "")).toBe(false);
    expect(lastLine()).toBe("API_KEY=… npm run deploy:staging -- --set-keys --revoke-all-keys");
    account.onCommand = () => {};
    interruption = new AbortController();
    expect(await deploy(["--new-key", "--revoke-all-keys"], "")).toBe(true);
  });
});

it("the first deployment needs a flag for its keys, and a database that does not exist yet for a location", async () => {
  account.traffic = undefined;
  account.databases = [];
  expect(await deploy()).toBe(false);
  expect(output).toContain("The Worker animal-store-staging does not exist yet. Run the first deployment yourself:");
  expect(await deploy(["--new-key"])).toBe(false);
  expect(output).toContain("Unset API_KEY: a first deployment with --new-key takes no other key.");
  expect(account.commands.filter((command) => !/status|list/.test(command))).toEqual([]);
  account.onCommand = (command) => {
    if (command === "d1 list") interrupt();
  };
  expect(await deploy(["--new-key"], "")).toBe(false);
  expect(newKey()).toBe("");
  interruption = new AbortController();
  account.onCommand = (command) => {
    if (/create|migrations/.test(command)) throw new WranglerFailed(command, "fetch failed");
    if (command.startsWith("d1 create")) account.databases = [{ name: "animal-store-staging" }];
  };
  const next = "API_KEY=… npm run deploy:staging -- --set-keys";
  expect(await deploy(["--new-key", "--location=weur"], "")).toBe(false);
  expect(lastLine()).toBe(`${next} --location=weur`);
  account.onCommand = (command) => {
    if (command.startsWith("d1 migrations")) throw new WranglerFailed(command, "fetch failed");
  };
  expect(await deploy(["--set-keys", "--location=weur"], "one")).toBe(false);
  expect(lastLine()).toBe(next);
  account.onCommand = () => {};
  account.databases = [{ name: "animal-store-staging" }];
  expect(await deploy(["--set-keys"], "one")).toBe(true);
  expect(await deploy(["--jurisdiction=eu"], "one")).toBe(false);
  expect(output).toContain("staging exists already, and its data cannot be moved: leave out --jurisdiction=eu.");
});

it("the first deployment is tested too", async () => {
  account.traffic = undefined;
  account.onRequest = (_, request) => (request === "GET /pets/1" ? [500, ""] : undefined);
  expect(await deploy(["--set-keys"])).toBe(false);
  expect(output).toContain("GET /pets/1: expected 200 ");
  expect(lastLine()).toBe("API_KEY=… npm run deploy:staging -- --set-keys");
});

it("the first deployment does not replace one that was faster", async () => {
  account.traffic = undefined;
  account.onCommand = (command) => {
    if (command.startsWith("d1 migrations")) account.traffic = { theirs: 100 };
  };
  expect(await deploy(["--set-keys"])).toBe(false);
  expect(output).toContain("Somebody else has deployed meanwhile. Deploy again.");
  expect(account.commands).not.toContain("deploy");
});

describe("the smoke test", () => {
  it("says how to delete a different animal under its Idempotency-Key", async () => {
    account.onRequest = (_, request) => (request === "POST /pets" ? [422, ""] : undefined);
    expect(await deploy()).toBe(false);
    expect(output).toContain(`for a different animal (422).
The service is not broken. Delete that animal, and run the test again:
npx wrangler d1 execute DB --env staging --remote --command "DELETE FROM pets WHERE idempotency_key = 'smoke test'"`);
  });

  it.each([
    ["GET /pets", [401, '{"code":"unauthorized"}']],
    ["POST /pets", [201, PET]],
    ["GET /pets?status=sold&limit=1&after=0", [200, "[]"]],
    ["GET /pets?limit=1", [500, ""]],
    ["GET /pets?after=1", [500, ""]],
    ["GET /pets/1", [200, PET]],
    ["GET /pets?limit=101", [200, "[]"]],
    ["GET /nothing", [200, ""]],
  ] as const)("fails if %s gets %j", async (wrong, answer) => {
    account.onRequest = (version, request) => {
      if (version === "current") return undefined;
      if (request === wrong) return [...answer];
      const Link = '<http://example.com/v1/pets?after=1>; rel="next"';
      return request === "GET /pets?limit=1" ? [200, `[${PET}]`, { Link }] : undefined;
    };
    expect(await deploy()).toBe(false);
    expect(output).toMatch(RegExp(`${wrong.replace(/[?]/, "\\?")}: expected `));
  });

  it("says what is known of a version that does not answer as this service", async () => {
    account.onRequest = (version) =>
      version === "new" ? [500, "error code: 1101", { "Worker-Version": "" }] : undefined;
    expect(await deploy()).toBe(false);
    expect(output).toContain("/pets answers 500: version new did not answer as this service. error code: 1101\n");
    account.versions.delete("new");
    account.onRequest = (version) =>
      version === "new" ? [403, "error code: 1010", { "Worker-Version": "" }] : undefined;
    expect(await deploy()).toBe(false);
    expect(output).toContain(
      'Cloudflare may have rejected the request: see "Use a custom domain" in docs/OPERATIONS.md.',
    );
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
