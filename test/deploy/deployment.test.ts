// What a deployment decides: which traffic it changes, which it leaves alone, and what it says. Only Wrangler and the service are
// replaced (account.ts).

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { baseIn, readTask, deploy as runDeployment } from "../../scripts/deploy/deploy.ts";
import { parseKey } from "../../scripts/deploy/key.ts";
import { environmentNames, readEnvironment } from "../../scripts/environment.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";
import { type Account, startAccount } from "../account.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));
const GITHUB_OUTPUT = join(folder, "output");

let account: Account;
let interruption: AbortController;
let print: ReturnType<typeof vi.spyOn>;
beforeEach(async () => {
  account = await startAccount();
  interruption = new AbortController();
  print = vi.spyOn(console, "log").mockReturnValue();
});
afterEach(() => account[Symbol.asyncDispose]());

/** Deploys to staging. Returns the message of the failure, if any. */
async function deploy(key = "key"): Promise<string> {
  const task = { ...readTask(["staging"], { SMOKE_URL: account.base, GITHUB_OUTPUT }), key };
  return runDeployment(task, interruption.signal, account.run, { interval: 1, patience: 0 }).then(
    () => "",
    ({ message }: Error) => message,
  );
}

const interrupt = () => interruption.abort(new Error("Interrupted by SIGINT."));
const changes = () => account.commands.filter((command) => command.startsWith("versions deploy"));
const [TEST, PROMOTE, LEAVE_ALONE] = [
  "versions deploy current@100% new@0%",
  "versions deploy new@100%",
  "versions deploy current@100%",
];
const UNCHANGED = `Callers get the version before: current@100%
If Wrangler now refuses to change a secret: "Put a commit live" in docs/OPERATIONS.md.`;

/** All moments of a deployment that succeeds: its commands and requests. */
async function momentsOf(): Promise<string[]> {
  const moments: string[] = [];
  account.onMoment = (moment) => moments.push(moment);
  expect(await deploy()).toBe("");
  return moments;
}

it("tests the new version at 0%, and then gives it all traffic", async () => {
  expect(await deploy()).toBe("");
  expect(account.commands.filter((command) => command !== "deployments status")).toEqual([
    "secret list",
    "d1 migrations apply DB",
    "triggers deploy",
    "versions upload",
    TEST,
    PROMOTE,
  ]);
  // The traffic is read before the upload, and before each change of it, too.
  expect(account.commands.filter((command) => command === "deployments status").length).toBe(4);
  expect(print.mock.lastCall).toEqual([`\nanimal-store-staging: version new serves all requests at ${account.base}`]);
  expect(readFileSync(GITHUB_OUTPUT, "utf8")).toBe(`url=${account.base}\n`);
});

it("changes nothing while the service is closed, and says how to open it", async () => {
  account.secrets.push("MAINTENANCE");
  expect(await deploy()).toMatch(
    /^The service is closed for maintenance\..*\nnpx wrangler secret delete MAINTENANCE --env staging\n/,
  );
  expect(account.commands).toEqual(["deployments status", "secret list"]);
});

it("uploads nothing if a secret, and with it the traffic, has changed since it began", async () => {
  for (const moment of ["d1 migrations apply DB", "triggers deploy"]) {
    account.traffic = "current@100%";
    account.onDone = (command) => {
      if (command === moment) account.traffic = "closed@100%";
    };
    expect(await deploy()).toBe("Somebody else has changed the traffic or a secret. The traffic is now closed@100%");
    expect(account.commands).not.toContain("versions upload");
  }
});

it("leaves split traffic alone, and says how to end it", async () => {
  account.traffic = "current@90% other@10%";
  expect(await deploy()).toBe(`Several versions share the traffic: current@90% other@10%
Give all of it to one of them, and deploy again: npx wrangler versions deploy <version>@100% -y --env staging`);
  expect(account.commands).toEqual(["deployments status"]);
});

it("removes a version that was left at 0%, even if it does not succeed", async () => {
  account.traffic = "current@100% left@0%";
  expect(await deploy("wrong")).toContain("The service does not have this key.");
  expect(account.traffic).toBe("current@100%");
  account.traffic = "current@100% left@0%";
  expect(await deploy()).toBe("");
  expect(account.traffic).toBe("new@100%");
});

describe("whatever ends it before the last step, the current version is left alone", () => {
  it("a failure of any command", async () => {
    for (const broken of new Set((await momentsOf()).filter((moment) => !moment.includes("/")))) {
      account.traffic = "current@100%";
      account.commands = [];
      account.onMoment = (moment) => {
        if (moment === broken) throw new WranglerFailed(moment, "502 Bad Gateway");
      };
      const message = await deploy();
      expect(message).toContain("502 Bad Gateway");
      expect(account.traffic).toBe("current@100%");
      const isUploaded = account.commands.includes("versions upload") && broken !== "versions upload";
      expect(message.endsWith(UNCHANGED)).toBe(isUploaded);
    }
  });

  it.each([
    [
      [500, "!"],
      '/pets: expected 401 {"code":"unauthorized"… with WWW-Authenticate: Bearer realm="animal-store", got 500',
    ],
    [[500, "error code: 1101", ""], "/pets answers 500 as version none instead of new: error code: 1101\n"],
    [[401, "", "theirs"], "/pets answers 401 as version theirs instead of new: "],
    [[401, "", "current"], "as version current instead of new: \nThis is a different environment's address, or"],
  ] as const)("a version or an address that answers %j", async ([status, body, version = "new"], message) => {
    account.onRequest = (asked) => (asked === "new" ? [status, body, { "Worker-Version": version }] : undefined);
    expect(await deploy()).toContain(message);
    expect(changes()).toEqual([TEST, LEAVE_ALONE]);
  });

  it("an interruption at any moment, and otherwise the new version serves", async () => {
    const { length } = await momentsOf();
    for (let at = 1; at <= length; at++) {
      interruption = new AbortController();
      account.traffic = "current@100%";
      let moments = 0;
      account.onMoment = () => {
        if (++moments === at) interrupt();
      };
      const message = await deploy();
      expect(message).toMatch(/^Interrupted by SIGINT\./);
      const serves = account.traffic === "new@100%";
      expect(message.includes("Version new gets all traffic")).toBe(serves);
      if (!serves) expect(account.traffic).toBe("current@100%");
    }
  });

  it("and if it cannot be, the last line is the command for it", async () => {
    account.onMoment = (moment) => {
      if (moment === "GET /pets/7") interrupt();
      if (moment === LEAVE_ALONE) throw new WranglerFailed("versions deploy", "502 Bad Gateway");
    };
    const message = await deploy();
    expect(message).toMatch(/^Interrupted by SIGINT\.\n502 Bad Gateway\n/);
    const command = "npx wrangler versions deploy current@100% -y --env staging";
    expect(message.endsWith(`\nGive the version before all traffic: ${command}`)).toBe(true);
    expect(account.commands.filter((command) => command === LEAVE_ALONE).length).toBe(5);
  });
});

it.each([
  ["fails", "onMoment", [TEST, TEST, PROMOTE, PROMOTE]],
  ["takes effect, but the answer is lost", "onDone", [TEST, PROMOTE]],
] as const)("changes the traffic as often as needed if each first change %s", async (_, hook, expected) => {
  const failed = new Set<string>();
  account[hook] = (command) => {
    if (!command.startsWith("versions deploy") || failed.has(command)) return;
    failed.add(command);
    throw new WranglerFailed("versions deploy", "502 Bad Gateway");
  };
  expect(await deploy()).toBe("");
  expect(changes()).toEqual(expected);
});

// The last one is how an operator ends a deployment by hand.
it.each(["theirs@100%", "current@100% theirs@0%", "current@100%"])(
  "leaves the traffic alone if somebody else changes it to %s at any moment, and says so",
  async (theirs) => {
    const moments = await momentsOf();
    for (const [at, reached] of moments.entries()) {
      // Before the test, what is there is simply the current traffic, after the last moment everything is done, and between
      // reading and changing it nothing protects it.
      const isEarly = at === 0 || (theirs === "current@100%" && at < moments.indexOf(TEST));
      if (isEarly || at === moments.length - 1 || reached.startsWith("versions deploy")) continue;
      account.traffic = "current@100%";
      let position = -1;
      account.onMoment = () => {
        if (++position === at) account.traffic = theirs;
      };
      const message = await deploy();
      expect([reached, account.traffic]).toEqual([reached, theirs]);
      if (theirs !== "current@100%") {
        expect(message).toMatch(
          RegExp(`(Somebody else has changed the traffic or a secret|The traffic has changed since).* ${theirs}$`, "m"),
        );
      }
    }
  },
);

it("keeps a version that does not answer once it has all traffic, and says how to go back", async () => {
  account.onRequest = () => (account.traffic === "new@100%" ? [503, "busy"] : undefined);
  expect(await deploy()).toBe(`${account.base}/pets answers 503: busy
Version new gets all traffic at ${account.base}. The version before: current@100%
To go back: "A new version is bad" in docs/OPERATIONS.md.`);
  expect(account.traffic).toBe("new@100%");
});

describe("the command line", () => {
  it("knows the environments of wrangler.toml: each has a Worker and a database of its own, and logs no query", () => {
    expect(environmentNames()).toEqual(["staging", "production"]);
    for (const name of environmentNames()) {
      const worker = `animal-store-${name}`;
      expect(readEnvironment(name)).toEqual({ name, worker, database: worker });
      expect(readConfig({ config: "wrangler.toml", env: name }).observability.redact_query_string).toBe(true);
    }
  });

  it.each([
    [[], {}, "The environment must be staging or production."],
    [["test"], {}, "The environment must be staging or production."],
    [["staging", "--new-key"], {}, "A deployment has no flags."],
    [["staging"], { SMOKE_URL: "http://example.com/v1" }, "SMOKE_URL must be an https URL that ends in /v1, or "],
    [["staging"], { SMOKE_URL: "http://127.0.0.1.example.com/v1" }, "or an http URL of localhost."],
    [["staging"], { SMOKE_URL: "https://example.com" }, "SMOKE_URL must be "],
    [["staging"], { SMOKE_URL: "example.com/v1" }, "SMOKE_URL must be "],
  ])("rejects %j with %j", (args, env, message) => {
    expect(() => readTask(args, env)).toThrow(message);
  });

  it.each(["https://api.example.com/v1", "http://localhost:8787/v1", "http://127.1.2.3/v1", "http://[::1]:8787/v1"])(
    "accepts %s, with a slash at its end, too",
    (base) => {
      expect(readTask(["staging"], { SMOKE_URL: `${base}/` })).toMatchObject({ base });
    },
  );

  it("takes the address that Wrangler prints if SMOKE_URL is empty, as in a workflow without the variable", () => {
    expect(readTask(["staging"], { SMOKE_URL: "" }).base).toBe(undefined);
  });

  it.each(["", "a,b", "a b", "a\nb", "k".repeat(513)])("accepts no key that is not one: %j", (key) => {
    expect(() => parseKey(key)).toThrow(/^An API key has 1 to 512 characters: (?!.*(a,b|a b|k{9}))/);
    expect(parseKey(" key\n")).toBe("key");
  });
});

it.each([
  ["  https://a.x.workers.dev\n  api.example.com (custom domain)\n", "https://a.x.workers.dev/v1"],
  ["  api.example.com (custom domain - zone name: example.com)\n", "https://api.example.com/v1"],
])("reads the address that Wrangler prints: %j", (targets, base) => {
  expect(baseIn(`Deployed animal-store-staging triggers (0.06 sec)\n${targets}`)).toBe(base);
  expect(() => baseIn("  example.com/*\n")).toThrow("set SMOKE_URL to the base URL.");
});

it.each([
  ["\u001b[31mIt broke.\u001b[0m\n", "It broke.\nwrangler d1 list failed."],
  ["More than one account available", "Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts: "],
  ["set a CLOUDFLARE_API_TOKEN environment variable … --temporary", "Run npx wrangler login, or set"],
])("a failure of Wrangler has a remedy: %j", (output, message) => {
  expect(new WranglerFailed("d1 list", output).message).toContain(message);
  expect(new WranglerFailed("d1 list", output).message).not.toContain("--temporary");
});
