// Runs the Wrangler of this folder, or of a copy of a commit, and other programs on Node: one after the other, in the
// terminal's process group, so that Ctrl-C ends all of them. Standard input is not passed on: a "no" to one of
// Wrangler's questions would end it with 0.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ENVIRONMENTS, LOCAL } from "./environment.ts";
import "./other-settings.js"; // warns

export const ROOT = join(import.meta.dirname, "..");

// Without the banner, Wrangler does not ask the registry for its newest version either. Below this log level, it would
// not print JSON. Its log files would keep copies of whole stores, readable by everyone. WRANGLER_CI_OVERRIDE_NAME
// would rename the Worker. In the cache, Wrangler keeps which of several accounts was chosen in this folder.
const SETTINGS = {
  WRANGLER_CACHE_DIR: process.env["WRANGLER_CACHE_DIR"] ?? join(ROOT, "node_modules/.cache/wrangler"),
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_LOG: "log",
  WRANGLER_WRITE_LOGS: "false",
  WRANGLER_CI_OVERRIDE_NAME: undefined,
};

const IF_MISSING = `
If the commit is older than a move of the database, see "Go back" in docs/OPERATIONS.md. If the database was deleted,
see "A deleted database" there.`;

type Options = { folder?: string; env?: NodeJS.Dict<string>; input?: string; output?: "inherit" | "pipe" };

/** Runs a command of Wrangler, like runNode: with the settings of that folder, and the account of this one. */
export function wrangler(args: string[], options: Options = {}): string {
  const { folder = ROOT, env } = options;
  const program = createRequire(join(folder, "package.json")).resolve("wrangler");
  // Otherwise, it would read those of the folder.
  const section = ENVIRONMENTS.find((name) => args.includes(name));
  const files = [".env", ".env.local", `.env.${section}`, `.env.${section}.local`].map((file) => join(ROOT, file));
  const flags = files.filter((file) => existsSync(file)).map((file) => `--env-file=${file}`);
  // Otherwise, a wrangler.json in any folder above would win.
  flags.push("--config", join(folder, "wrangler.toml"));
  return runNode(["--no-warnings", program, ...args, ...flags], { ...options, env: { ...SETTINGS, ...env } });
}

/** Executes SQL in the database of an environment. */
export const executeSql = (environment: string, args: string[], options?: Options): string => {
  const flags = environment === LOCAL ? ["--local"] : ["--env", environment, "--remote"];
  return wrangler(["d1", "execute", "DB", ...flags, ...args], options);
};

/** The rows that a statement selects there. */
export const queryRows = (environment: string, sql: string, folder = ROOT): Record<string, unknown>[] =>
  JSON.parse(executeSql(environment, ["--json", "--command", sql], { output: "pipe", folder }))[0].results;

/**
 * Runs Node in a folder. `env` is added to the environment. What it prints appears on the terminal or, with "pipe", is
 * returned, without errors and warnings. Throws if it fails: with "pipe", with all that it has printed.
 */
export function runNode(args: string[], options: Options): string {
  const { folder = ROOT, env, input, output = "inherit" } = options;
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    ...(input && { input }),
    stdio: [input ? "pipe" : "ignore", output, output],
    encoding: "utf8",
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (status === 0) return stdout;
  const printed = output === "pipe" ? `${stdout}${stderr}` : "The command above failed.";
  throw error ?? new Error(printed.includes("Couldn't find a D1 DB") ? printed + IF_MISSING : printed);
}
