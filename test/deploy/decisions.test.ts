// What a deployment decides and says. Only Wrangler, Git and the service are replaced (account.ts).

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { type Progress, readTask, deploy as runDeployment } from "../../scripts/deploy/deploy.ts";
import { parseKey } from "../../scripts/deploy/key.ts";
import { trialDatabase } from "../../scripts/deploy/trial.ts";
import { baseIn } from "../../scripts/deploy/worker.ts";
import { environmentNames, readEnvironment, trialOf } from "../../scripts/environment.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";
import { type Account, startAccount, versionId } from "../account.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));
const GITHUB_OUTPUT = join(folder, "output");

let account: Account;
let readCommit: () => string;
let printed: string[];
beforeEach(async () => {
  account = await startAccount();
  readCommit = () => "abc1234";
  printed = [];
  for (const stream of ["log", "error"] as const) {
    vi.spyOn(console, stream).mockImplementation((text) => printed.push(text));
  }
});
afterEach(() => account[Symbol.asyncDispose]());

/** Deploys to staging. Returns the message of the failure, if any, and what the progress adds to it. */
async function deploy(env: NodeJS.Dict<string> = {}, run = account.run): Promise<string> {
  const progress: Progress = { ending: "" };
  const tools = { run, readCommit, interval: 1, patience: 0 };
  return runDeployment(readTask(["staging"], { GITHUB_OUTPUT, ...env }), progress, tools).then(
    () => {
      // A signal no longer waits for Wrangler.
      expect(progress.release).toBe(undefined);
      return "";
    },
    ({ message }: Error) => `${message}\n${progress.ending}`,
  );
}

const COMMANDS = [
  "secret list staging",
  "deployments status staging",
  "deploy staging-trial",
  ...Array(3).fill("d1 execute animal-store-staging-trial staging-trial"),
  "d1 migrations apply animal-store-staging-trial staging-trial",
  "d1 time-travel info DB staging",
  "d1 migrations apply DB staging",
  "deployments status staging",
  "deploy staging",
];
const AGAIN = "To deploy again: npm run deploy:staging";
const UNCHANGED = `Nothing has changed in animal-store-staging. ${AGAIN}`;
const LIVE = `Version ${versionId(2)} is live. The version before: current
To go back: "A new version is bad" in docs/OPERATIONS.md.`;

/** Makes a command fail, this many times. */
function breakDown(command: string, times = Number.POSITIVE_INFINITY, output = "502 Bad Gateway"): void {
  account.onMoment = (moment) => {
    if (moment === command && times-- > 0) throw new WranglerFailed("d1", output);
  };
}

it("tests the commit on the trial Worker, and then deploys it", async () => {
  expect(await deploy()).toBe("");
  expect(account.commands).toEqual(COMMANDS);
  expect(account.live).toEqual({ staging: versionId(2), "staging-trial": versionId(1) });
  expect(printed.slice(-2)).toEqual([
    `Commit abc1234 is deployed: version ${versionId(2)} of animal-store-staging answers at ${account.base}`,
    'The version before: current\nTo go back: "A new version is bad" in docs/OPERATIONS.md.',
  ]);
  expect(printed).toEqual(expect.arrayContaining(["a warning about staging-trial", "a warning about staging"]));
  expect(printed).toContain("a bookmark");
  expect(readFileSync(GITHUB_OUTPUT, "utf8")).toBe(`url=${account.base}\n`);
  const key = account.trialKey;
  expect(printed.join()).not.toContain(key);
  await deploy();
  expect(account.trialKey).toMatch(/^[\w-]{36}$/);
  expect(account.trialKey).not.toBe(key);
});

it("refuses a folder that is not at a commit, or at a different one when the test has passed", async () => {
  readCommit = () => {
    throw new Error("A deployment takes a commit");
  };
  expect(await deploy()).toBe(`A deployment takes a commit\n${UNCHANGED}`);
  expect(account.commands).toEqual([]);
  for (const [commits, ending] of [
    [["abc1234", "def5678"], "Nothing has changed in "],
    [["abc1234", "abc1234", "def5678"], "Migrations may have "],
  ] as const) {
    let reads = 0;
    readCommit = () => commits[reads++] ?? "";
    expect(await deploy()).toContain(`This folder was at commit abc1234, and is at a different one now.\n${ending}`);
  }
  expect(account.live.staging).toBe("current");
});

it.each([
  ["current", "current"],
  ["current other", "current (90%), other (10%)"],
])("goes on while the service is closed, and serves %s", async (live, shown) => {
  account.secrets.push("MAINTENANCE");
  account.live.staging = live;
  expect(await deploy()).toBe("");
  expect(printed.slice(-2)).toEqual([
    `The version before: ${shown}\nTo go back: "A new version is bad" in docs/OPERATIONS.md.`,
    "The service was closed when this began. Open it when your procedure says so.",
  ]);
});

it("says how to set the secret that is missing", async () => {
  account.secrets = ["API_KEY_ALICE"];
  expect(await deploy()).toMatch(/ has no secret API_KEY, .*\nnpx wrangler secret put API_KEY --env staging\nNothing/);
  expect(account.commands.at(-1)).toBe("secret list staging");
});

describe("a command that fails", () => {
  it("is not repeated if the code does not build", async () => {
    breakDown("deploy staging-trial", 9, "Build failed with 1 error:\n  src/index.ts:1:1");
    expect(await deploy()).toContain(`src/index.ts:1:1\nCorrect the commit, and deploy.\n${UNCHANGED}`);
    expect(account.commands.filter((command) => command === "deploy staging-trial").length).toBe(1);
  });

  const MIGRATION = `If a migration is wrong, correct the commit, and deploy. ${AGAIN}`;
  it.each([
    ["secret list staging", UNCHANGED],
    ["deployments status staging", UNCHANGED],
    ["deploy staging-trial", UNCHANGED],
    [
      "d1 execute animal-store-staging-trial staging-trial",
      `${UNCHANGED} If its tables cannot be dropped, delete the trial before, in a terminal:
      npx wrangler delete --env staging-trial npx wrangler d1 delete animal-store-staging-trial`,
    ],
    ["d1 migrations apply animal-store-staging-trial staging-trial", UNCHANGED.replace(AGAIN, MIGRATION)],
    ["d1 time-travel info DB staging", UNCHANGED],
    [
      "d1 migrations apply DB staging",
      `Migrations may have been applied to the database of animal-store-staging. The version that serves should work
with them. If callers get errors, deploy again, or return to the bookmark: "Data is wrong or gone" in
docs/OPERATIONS.md.
${MIGRATION}`,
    ],
    [
      "deploy staging",
      `animal-store-staging served current before, and serves current now.
If that is a new version, only its settings or addresses failed: repeating does not help if a permission is missing.
The page of animal-store-staging names the commit that serves. Until a deployment succeeds, Cloudflare may refuse to
change secrets. ${AGAIN}`,
    ],
  ])("is repeated once, unless it applies migrations, and says what callers have: %s", async (command, ending) => {
    breakDown(command, 1);
    expect((await deploy()) === "").toBe(!command.startsWith("d1 migrations"));
    account.live.staging = "current";
    breakDown(command);
    expect((await deploy()).replaceAll(/\s+/g, " ")).toBe(
      `502 Bad Gateway wrangler d1 failed. ${ending.replaceAll(/\s+/g, " ")}`,
    );
    expect(account.live.staging).toBe("current");
  });

  it("does not say what serves if that is unknown", async () => {
    account.onMoment = (moment) => {
      if (account.commands.includes("deploy staging")) throw new WranglerFailed(moment, "fetch failed");
    };
    expect(await deploy()).toContain("served current before, and serves an unknown version now.\n");
  });

  it("names the new version if only its settings or addresses failed", async () => {
    account.onDone = (command) => {
      if (command === "deploy staging") throw new WranglerFailed("deploy", "Authentication error");
    };
    expect(await deploy()).toContain(`served current before, and serves ${versionId(3)} now.\n`);
  });
});

describe("the test", () => {
  it.each([
    [
      [500, "!"],
      /^GET \/pets: expected 401 .*\nThe log of animal-store-staging-trial has the cause. Correct the commit/,
    ],
    [[500, "error code: 1101", ""], /as version none instead of .*: error code: 1101\nCloudflare may need longer, or /],
    [[401, "", "theirs"], /answers 401 as version theirs instead of .*\nThis is a different .*\nCloudflare may need/],
  ] as const)("refuses a version or an address that answers %j", async ([status, body, version], message) => {
    account.onRequest = () => [status, body, version === undefined ? {} : { "Worker-Version": version }];
    const failure = await deploy();
    expect(failure).toMatch(message);
    expect(failure.endsWith(UNCHANGED)).toBe(true);
    expect(account.commands).not.toContain("d1 migrations apply DB staging");
  });

  it("finds an INSERT that is broken", async () => {
    account.onRequest = (_, request, body) =>
      request === "POST /pets" && body.includes("Ada") ? [500, "{}"] : undefined;
    expect(await deploy()).toMatch(/^POST \/pets: expected 422 /);
  });
});

describe("what somebody else puts live", () => {
  it("during the test is named", async () => {
    account.onMoment = (moment) => {
      if (moment === "d1 migrations apply DB staging") account.live.staging = "theirs";
    };
    expect(await deploy()).toBe("");
    expect(printed).toContain(
      "Somebody has deployed or changed a secret meanwhile: animal-store-staging served current, and now theirs",
    );
  });

  it("after the deployment is named, and is no failure", async () => {
    account.onDone = (command) => {
      if (command === "deploy staging") account.live.staging = "theirs";
    };
    expect(await deploy()).toBe("");
    expect(printed).toContain(
      "Somebody has deployed or changed a secret since: animal-store-staging serves theirs now.",
    );
  });
});

describe("the new version", () => {
  it("is live, but does not answer as it should", async () => {
    account.onRequest = (version) => (version === versionId(2) ? [500, "no key"] : undefined);
    expect(await deploy()).toMatch(RegExp(`^GET /pets: expected 401 .* got 500: no key\n${LIVE}$`));
  });

  it("is awaited at SMOKE_URL", async () => {
    const SMOKE_URL = "http://127.0.0.1:1/v1";
    expect(await deploy({ SMOKE_URL })).toMatch(
      RegExp(`^${SMOKE_URL}/pets does not answer: .*\nIf SMOKE_URL is wrong, correct it\\.\n${LIVE}$`),
    );
  });

  it("is live without its settings if Wrangler could not send them", async () => {
    const run: Account["run"] = (args, options) => {
      if (args.includes("staging")) options?.warn?.("▲ Could not apply service and environment tags.");
      return account.run(args, options);
    };
    expect(await deploy({}, run)).toMatch(
      /^animal-store-staging is live, but its settings were not sent, .* To deploy again: npm run deploy:staging/,
    );
  });
});

describe("the environments", () => {
  it("have a Worker of their own, and log no query", () => {
    expect(environmentNames()).toEqual(["staging", "production"]);
    for (const name of environmentNames()) {
      const worker = `animal-store-${name}`;
      expect(readEnvironment(name)).toEqual({ name, worker });
      expect(readConfig({ config: "wrangler.toml", env: name }).observability.redact_query_string).toBe(true);
    }
  });

  it.each(environmentNames())("the trial Worker of %s differs only in its database, counters and addresses", (name) => {
    const { ratelimits, ...trial } = readConfig({ config: "wrangler.toml", env: trialOf(name) });
    const addresses = { routes: [], workers_dev: true, preview_urls: false };
    const own = readConfig({ config: "wrangler.toml", env: name });
    expect(trial).toEqual({
      ...own,
      ...addresses,
      ratelimits: undefined,
      name: `animal-store-${name}-trial`,
      targetEnvironment: trialOf(name),
      d1_databases: [{ ...own.d1_databases[0], database_name: trialDatabase(name) }],
    });
    expect(ratelimits).toEqual([{ ...own.ratelimits[0], namespace_id: expect.any(String) }]);
  });
});

describe("the command line", () => {
  it.each([
    [[], {}, "The environment must be staging or production."],
    [["staging-trial"], {}, "The environment must be staging or production."],
    [["staging", "--new-key"], {}, "A deployment has no flags."],
    [["staging"], { SMOKE_URL: "http://example.com/v1" }, "SMOKE_URL must be an https URL, or "],
    [["staging"], { SMOKE_URL: "http://127.0.0.1.example.com/v1" }, "SMOKE_URL must be "],
    [["staging"], { SMOKE_URL: "http://my-localhost/v1" }, "SMOKE_URL must be "],
    [["staging"], { SMOKE_URL: "https://example.com/v1/pets" }, "that ends in /v1."],
    [["staging"], { SMOKE_URL: "example.com/v1" }, "SMOKE_URL must be "],
  ])("rejects %j with %j", (args, env, message) => {
    expect(() => readTask(args, env)).toThrow(message);
  });

  it.each(["https://api.example.com/v1", "http://127.1.2.3/v1", "http://[::1]:8787/v1"])("accepts %s/", (base) => {
    expect(readTask(["staging"], { SMOKE_URL: `${base}/` })).toMatchObject({ given: base });
  });

  it("takes the address that Wrangler reports if SMOKE_URL is empty, as in a workflow without the variable", () => {
    expect(readTask(["staging"], { SMOKE_URL: "" }).given).toBe(undefined);
  });

  it.each(["", "a,b", "a b", "a\nb", "k".repeat(513)])("accepts no key that is not one: %j", (key) => {
    expect(() => parseKey(key)).toThrow(/^An API key has 1 to 512 characters: (?!.*(a,b|a b|k{9}))/);
    expect(parseKey(" key\n")).toBe("key");
  });
});

it.each([
  [["api.example.com (custom domain)", "https://a.x.workers.dev"], "https://a.x.workers.dev/v1"],
  [["example.com/*", "api.example.com (custom domain - zone name: example.com)"], "https://api.example.com/v1"],
  [["example.com/* (zone name: example.com)"], undefined],
])("takes the base URL from the addresses %j", (targets, base) => {
  expect(baseIn(targets)).toBe(base);
});

it.each([
  ["\u001b[31mIt broke.\u001b[0m\n", "It broke.\nwrangler d1 list failed."],
  ["More than one account available", "Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts: "],
  ["set a CLOUDFLARE_API_TOKEN environment variable … --temporary", "Run npx wrangler login, or set"],
])("a failure of Wrangler has a remedy: %j", (output, message) => {
  expect(new WranglerFailed("d1 list", output).message).toContain(message);
  expect(new WranglerFailed("d1 list", output).message).not.toContain("--temporary");
});
