// Brings one environment up to date: its database, the migrations, the Worker, and then the smoke test against what was
// deployed. Every step can be repeated; the first one that fails ends it. Wrangler alone is not enough, because
// `d1 create` fails on a database that exists, and `d1 migrations apply` on one that does not.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, parseEnv } from "node:util";

const START = 90_000; // milliseconds within which a new address must answer

// Typed by hand: with the types of both runtimes loaded, `process` has none.
const exit: (code: number) => never = process.exit;

const WRANGLER = join(dirname(fileURLToPath(import.meta.resolve("wrangler/package.json"))), "bin/wrangler.js");

const [environment = "", ...flags] = process.argv.slice(2);
const database = `animal-store-${environment}`;
const { API_KEY = keyInSecretsFile(), SMOKE_URL } = process.env as NodeJS.Dict<string>;
if (!["staging", "production"].includes(environment) || !API_KEY) {
  console.error(`usage: API_KEY=<key> npm run deploy:<staging or production>
The first time: npm run deploy:<staging or production> -- --secrets-file <file with API_KEY=<key>>
The smoke test uses the key; SMOKE_URL is the base URL where it is not the address that Wrangler prints.`);
  exit(2);
}

step("The database");
const databases: { name: string }[] = JSON.parse(wrangler(["d1", "list", "--json"], "pipe"));
if (databases.some(({ name }) => name === database)) console.log(`${database} exists.`);
else wrangler(["d1", "create", database, "--update-config=false"]);

step("The migrations");
wrangler(["d1", "migrations", "apply", "DB", "--env", environment, "--remote"]);

step("The Worker");
const address = deploy();
const base = SMOKE_URL ?? (address ? `${address}/v1` : fail("Wrangler reported no address: say it in SMOKE_URL."));

step(`The smoke test of ${base}`);
await answers(base);
run([join(import.meta.dirname, "smoke.ts"), base], { API_KEY });

function step(what: string): void {
  console.log(`\n== ${environment}: ${what}\n`);
}

/** Deploys, and gives the Worker's address as Wrangler reports it, if it has one. */
function deploy(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-deploy-"));
  try {
    const report = join(folder, "report.ndjson");
    wrangler(["deploy", "--env", environment, ...flags], "inherit", { WRANGLER_OUTPUT_FILE_PATH: report });
    const entries: { type: string; targets?: string[] }[] = readFileSync(report, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    return entries.find(({ type }) => type === "deploy")?.targets?.find((target) => URL.canParse(target));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Waits for an address that is new to be served at all. */
async function answers(url: string): Promise<void> {
  const deadline = Date.now() + START;
  const status = () =>
    fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
      (answer) => answer.status,
      () => 500,
    );
  while ((await status()) >= 500) {
    if (Date.now() > deadline) fail(`${url} does not answer.`);
    await new Promise((done) => setTimeout(done, 1_000));
  }
}

function wrangler(command: string[], output: "inherit" | "pipe" = "inherit", env: NodeJS.Dict<string> = {}): string {
  // Not API_KEY, which would win over the one in the secrets file and be uploaded in its place.
  return run([WRANGLER, ...command], { ...env, API_KEY: undefined }, output);
}

function run(command: string[], env: NodeJS.Dict<string>, output: "inherit" | "pipe" = "inherit"): string {
  const { status, stdout } = spawnSync(process.execPath, command, {
    env: Object.assign({ ...process.env }, env),
    encoding: "utf8",
    // Nothing is asked: what Wrangler would ask a person, it takes for granted.
    stdio: ["ignore", output, "inherit"],
  });
  if (status !== 0) fail("This step failed; nothing after it was done.");
  return stdout;
}

function fail(why: string): never {
  console.error(`\n${environment} is not up to date. ${why}`);
  exit(1);
}

/** The first key of the secrets file, which is JSON or of the form of .env. */
function keyInSecretsFile(): string | undefined {
  const { values } = parseArgs({ args: flags, options: { "secrets-file": { type: "string" } }, strict: false });
  const file = values["secrets-file"];
  if (typeof file !== "string") return undefined;
  if (!existsSync(file)) fail(`There is no file ${file}.`);
  const text = readFileSync(file, "utf8");
  const secrets: NodeJS.Dict<string> = text.trimStart().startsWith("{") ? JSON.parse(text) : parseEnv(text);
  return secrets["API_KEY"]?.split(",")[0]?.trim();
}
