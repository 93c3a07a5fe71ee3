// What a deployment decides and says. Only Wrangler, Git and the service are replaced (account.ts).

import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { baseIn, readTask, deploy as runDeployment } from "../../scripts/deploy/deploy.ts";
import { parseKey } from "../../scripts/deploy/key.ts";
import { environmentNames, readEnvironment, trialOf } from "../../scripts/environment.ts";
import { WranglerFailed } from "../../scripts/wrangler.ts";
import { type Account, startAccount, versionId } from "../account.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));
const GITHUB_OUTPUT = join(folder, "output");

let account: Account;
let interruption: AbortController;
let readCommit: () => string;
let printed: string[];
beforeEach(async () => {
  account = await startAccount();
  interruption = new AbortController();
  readCommit = () => "abc1234";
  printed = [];
  for (const stream of ["log", "error"] as const) {
    vi.spyOn(console, stream).mockImplementation((text) => printed.push(text));
  }
});
afterEach(() => account[Symbol.asyncDispose]());

/** Deploys to staging. Returns the message of the failure, if any. */
async function deploy(env: NodeJS.Dict<string> = {}, run = account.run): Promise<string> {
  const tools = { run, readCommit, interval: 1, patience: 0 };
  return runDeployment(readTask(["staging"], { GITHUB_OUTPUT, ...env }), interruption.signal, tools).then(
    () => "",
    ({ message }: Error) => message,
  );
}

const interrupt = () => interruption.abort(new Error("Interrupted by SIGINT."));

const COMMANDS = [
  "secret list staging",
  "d1 time-travel info DB staging",
  "d1 migrations apply DB staging",
  "deploy staging-trial",
  "deployments status staging",
  "deploy staging",
  "secret list staging",
];
const UNCHANGED = "This deployment has not changed animal-store-staging.\n";
const SECTION = '\nSee "A deployment failed" in docs/OPERATIONS.md.';

/** All moments of a deployment that succeeds: its commands and requests. */
async function momentsOf(): Promise<string[]> {
  const moments: string[] = [];
  account.onMoment = (moment) => moments.push(moment);
  expect(await deploy()).toBe("");
  return moments;
}

it("tests the commit on the trial Worker, and then deploys it", async () => {
  const deployments: string[][] = [];
  let secrets = "";
  const run: Account["run"] = async (args, options) => {
    if (args[0] === "deploy") deployments.push(args);
    if (args.includes("--secrets-file")) {
      secrets = String(args.at(-1));
      const modes = [dirname(secrets), secrets].map((path) => statSync(path).mode & 0o777);
      if (process.platform !== "win32") expect(modes).toEqual([0o700, 0o600]);
    }
    return account.run(args, options);
  };
  expect(await deploy({}, run)).toBe("");
  expect(account.commands).toEqual(COMMANDS);
  expect(deployments).toEqual([
    ["deploy", "--env", "staging-trial", "--tag", "abc1234", "--secrets-file", secrets],
    ["deploy", "--env", "staging", "--tag", "abc1234"],
  ]);
  expect(existsSync(dirname(secrets))).toBe(false);
  expect(account.live).toEqual({ staging: `${versionId(2)}@100%`, "staging-trial": `${versionId(1)}@100%` });
  expect(printed.slice(-2)).toEqual([
    `animal-store-staging: version ${versionId(2)} serves all requests at ${account.base}`,
    'The version before: current@100%. To go back: "A new version is bad" in docs/OPERATIONS.md.',
  ]);
  expect(printed).toEqual(expect.arrayContaining(["a warning about staging-trial", "a warning about staging"]));
  expect(printed).toContain("a bookmark");
  expect(printed.join()).not.toContain(account.trialKey);
  expect(account.trialKey).toMatch(/^[\w-]{36}$/);
  expect(readFileSync(GITHUB_OUTPUT, "utf8")).toBe(`url=${account.base}\n`);
});

it("uses a different key each time", async () => {
  await deploy();
  const first = account.trialKey;
  await deploy();
  expect(account.trialKey).not.toBe(first);
});

it("refuses a folder with changes, and one that is at a different commit when the test has passed", async () => {
  readCommit = () => {
    throw new Error("This folder has changes that are not committed:\n M src/index.ts");
  };
  expect(await deploy()).toBe(`${UNCHANGED}This folder has changes that are not committed:\n M src/index.ts
A deployment takes a commit. Commit what you want to deploy, or deploy the folder as it is, without a test:
npx wrangler deploy --env staging`);
  expect(account.commands).toEqual([]);
  const commits = ["abc1234", "def5678"];
  readCommit = () => commits.shift() ?? "";
  expect(await deploy()).toContain("This folder was at commit abc1234, and is at a different one now.");
  expect(account.live.staging).toBe("current@100%");
});

it.each(["current@100%", "current@90% other@10%"])("goes on while the service is closed, and with %s", async (live) => {
  account.secrets.push("MAINTENANCE");
  account.live.staging = live;
  expect(await deploy()).toBe("");
  expect(printed.slice(-2)).toEqual([
    `The version before: ${live}. To go back: "A new version is bad" in docs/OPERATIONS.md.`,
    'The service is closed for maintenance: "Open the service" in docs/OPERATIONS.md.',
  ]);
});

it("says so if it cannot read whether the service is closed", async () => {
  account.onMoment = (moment) => {
    const isLive = account.live.staging !== "current@100%";
    if (isLive && moment === "secret list staging") throw new WranglerFailed("secret list", "502 Bad Gateway");
  };
  expect(await deploy()).toBe("");
  expect(printed.at(-1)).toBe(
    "Whether the service is closed could not be read: npx wrangler secret list --env staging",
  );
});

describe("whatever ends it before the last step, the Worker of the environment is left alone", () => {
  it("a failure of any command", async () => {
    for (const broken of COMMANDS.slice(0, 4)) {
      account.onMoment = (moment) => {
        if (moment === broken) throw new WranglerFailed("d1", "502 Bad Gateway");
      };
      expect(await deploy()).toBe(`${UNCHANGED}502 Bad Gateway\nwrangler d1 failed.${SECTION}`);
      expect(account.live.staging).toBe("current@100%");
    }
  });

  it.each([
    [
      [500, "!"],
      'GET /pets: expected 401 {"code":"unauthorized"… with WWW-Authenticate: Bearer realm="animal-store", got',
    ],
    [[200, "[]"], "GET /pets: expected 401 "],
    [[500, "error code: 1101", ""], `/pets answers 500 as version none instead of ${versionId(1)}: error code: 1101\n`],
    [[401, "", "theirs"], `/pets answers 401 as version theirs instead of ${versionId(1)}: \nThis is a different `],
  ] as const)("a version or an address that answers %j", async ([status, body, version], message) => {
    account.onRequest = () => [status, body, version === undefined ? {} : { "Worker-Version": version }];
    const failure = await deploy();
    expect(failure).toContain(message);
    expect(failure).toMatch(RegExp(`^${UNCHANGED}.*${SECTION}$`, "s"));
    expect(account.commands).not.toContain("deploy staging");
  });

  it("a version that shows the key of the trial Worker, which is hidden", async () => {
    account.onRequest = () => [500, `{"Trial-Key": "${account.trialKey}"}`];
    expect(await deploy()).toContain('got 500: {"Trial-Key": "<key>"}');
  });

  it("a different deployment that replaces the version on the trial Worker", async () => {
    account.onMoment = (moment) => {
      if (moment === "trial GET /pets/7") account.live["staging-trial"] = "theirs@100%";
    };
    account.onRequest = () => (account.live["staging-trial"] === "theirs@100%" ? [500, ""] : undefined);
    expect(
      await deploy(),
    ).toBe(`${UNCHANGED}Another deployment has put a different version on the trial Worker since: theirs@100%
Wait until it has ended, and deploy again:\nnpm run deploy:staging`);
  });

  it("an interruption at any moment; in the last step, the new version is live", async () => {
    const all = await momentsOf();
    for (let at = 1; at < all.length; at++) {
      interruption = new AbortController();
      Object.assign(account, { uploaded: 0, commands: [] });
      account.live.staging = "current@100%";
      let moments = 0;
      account.onMoment = () => {
        if (++moments === at) interrupt();
      };
      const message = await deploy();
      const isLive = at > all.indexOf("deploy staging");
      const [moment = ""] = all.slice(at - 1);
      if (!isLive && COMMANDS.includes(moment)) expect(account.commands.at(-1)).toBe(moment);
      expect(account.live.staging).toBe(isLive ? `${versionId(2)}@100%` : "current@100%");
      expect(message).toBe(
        isLive
          ? `Interrupted by SIGINT.
Version ${versionId(2)} is live. To see whether it answers: npm run smoke -- ${account.base}`
          : `${UNCHANGED}Interrupted by SIGINT.\nTo deploy: npm run deploy:staging`,
      );
    }
  });
});

it("says which commands are missing before a first deployment", async () => {
  account.live.staging = undefined;
  expect(await deploy()).toMatch(
    /does not exist in this account(.|\n)*\nnpx wrangler secret put API_KEY --env staging$/,
  );
  account.live.staging = "current@100%";
  account.secrets = ["API_KEY_ALICE"];
  expect(await deploy()).toMatch(/ has no secret API_KEY, .*\nnpx wrangler secret put API_KEY --env staging$/);
  expect(account.commands.at(-1)).toBe("secret list staging");
});

describe("the last step", () => {
  it("is repeated once if it fails", async () => {
    for (const hook of ["onMoment", "onDone"] as const) {
      let failures = 0;
      account[hook] = (moment) => {
        if (moment === "deploy staging" && ++failures === 1) throw new WranglerFailed("deploy", "502 Bad Gateway");
      };
      expect(await deploy()).toBe("");
      expect(printed).toContain("502 Bad Gateway\nwrangler deploy failed.\nTrying once more.");
      expect(failures).toBe(2);
    }
  });

  it("says what serves if it fails again, and that deploying again repairs it", async () => {
    account.onMoment = (moment) => {
      if (moment === "deploy staging") throw new WranglerFailed("deploy", "502 Bad Gateway");
    };
    expect(await deploy()).toBe(`502 Bad Gateway\nwrangler deploy failed.
animal-store-staging serves current@100% now. The version before: current@100%
Until a deployment succeeds, Cloudflare may refuse to change secrets. Deploy again:\nnpm run deploy:staging`);
    expect(account.commands.filter((command) => command === "deploy staging").length).toBe(2);
  });

  it("is not repeated after an interruption", async () => {
    account.onMoment = (moment) => {
      if (moment !== "deploy staging") return;
      interrupt();
      throw new WranglerFailed("deploy", "502 Bad Gateway");
    };
    expect(await deploy()).toMatch(/^502 Bad Gateway\n(.*\n)+npm run deploy:staging$/);
    expect(account.commands.filter((command) => command === "deploy staging").length).toBe(1);
  });

  it("says how to go back if the live version does not answer as it should", async () => {
    account.onRequest = (version) => (version === versionId(2) ? [500, "no key"] : undefined);
    expect(await deploy()).toMatch(
      RegExp(`got 500: no key\nVersion ${versionId(2)} is live, but does not answer as expected\\. .*
See "All callers get errors" in docs/OPERATIONS.md or, to go back, "A new version is bad".$`),
    );
  });

  it("does not fail if somebody else has changed a secret or deployed since", async () => {
    account.onDone = (command) => {
      if (command === "deploy staging") account.live.staging = "theirs@100%";
    };
    expect(await deploy()).toBe("");
    expect(printed).toContain(
      "Somebody has changed a secret or deployed since: animal-store-staging serves theirs@100% now.",
    );
  });

  it("waits at SMOKE_URL instead of the address that Wrangler reports", async () => {
    expect(await deploy({ SMOKE_URL: "http://127.0.0.1:1/v1" })).toContain(
      "http://127.0.0.1:1/v1/pets does not answer: ",
    );
  });
});

describe("the environments", () => {
  it("have a Worker and a database of their own, and log no query", () => {
    expect(environmentNames()).toEqual(["staging", "production"]);
    for (const name of environmentNames()) {
      const worker = `animal-store-${name}`;
      expect(readEnvironment(name)).toEqual({ name, worker });
      expect(readConfig({ config: "wrangler.toml", env: name }).observability.redact_query_string).toBe(true);
    }
  });

  it.each(environmentNames())("the trial Worker of %s differs only in its entry point and addresses", (name) => {
    const trial = readConfig({ config: "wrangler.toml", env: trialOf(name) });
    const addresses = { routes: [], workers_dev: true, preview_urls: false };
    const { main, ...same } = readConfig({ config: "wrangler.toml", env: name });
    expect(trial).toEqual({
      ...same,
      ...addresses,
      name: `animal-store-${name}-trial`,
      targetEnvironment: trialOf(name),
      main: join(dirname(main), "trial.ts"),
    });
  });
});

describe("the command line", () => {
  it.each([
    [[], {}, "The environment must be staging or production."],
    [["test"], {}, "The environment must be staging or production."],
    [["staging-trial"], {}, "The environment must be staging or production."],
    [["staging", "--new-key"], {}, "A deployment has no flags."],
    [
      ["staging"],
      { SMOKE_URL: "http://example.com/v1" },
      "SMOKE_URL must be an https URL, or an http URL of localhost, ",
    ],
    [["staging"], { SMOKE_URL: "http://127.0.0.1.example.com/v1" }, "SMOKE_URL must be "],
    [["staging"], { SMOKE_URL: "http://localhost:8787" }, "that ends in /v1."],
    [["staging"], { SMOKE_URL: "https://example.com" }, "SMOKE_URL must be "],
    [["staging"], { SMOKE_URL: "example.com/v1" }, "SMOKE_URL must be "],
  ])("rejects %j with %j", (args, env, message) => {
    expect(() => readTask(args, env)).toThrow(message);
  });

  it.each(["https://api.example.com/v1", "http://localhost:8787/v1", "http://127.1.2.3/v1", "http://[::1]:8787/v1"])(
    "accepts %s, with a slash at its end, too",
    (base) => {
      expect(readTask(["staging"], { SMOKE_URL: `${base}/` })).toMatchObject({ given: base });
    },
  );

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
  ['Worker "animal-store-x" (env: x) not found.', "\nnpx wrangler secret put API_KEY --env x"],
  ["set a CLOUDFLARE_API_TOKEN environment variable … --temporary", "Run npx wrangler login, or set"],
])("a failure of Wrangler has a remedy: %j", (output, message) => {
  expect(new WranglerFailed("d1 list", output).message).toContain(message);
  expect(new WranglerFailed("d1 list", output).message).not.toContain("--temporary");
});
