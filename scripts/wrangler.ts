// Runs the project's own Wrangler, and other programs on Node: one after the other, in the terminal's process group, so
// that Ctrl-C ends all of them. Standard input is not passed on: a "no" to one of Wrangler's questions would end it
// with 0.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { LOCAL } from "./environment.ts";

const WRANGLER = createRequire(import.meta.url).resolve("wrangler");

// Passed to every command: otherwise a wrangler.json in any folder above would win.
export const WRANGLER_TOML = join(import.meta.dirname, "../wrangler.toml");

// Without the banner, Wrangler does not ask the registry for its newest version either. Below this log level, it would
// not print JSON. Its log files would keep copies of whole stores, readable by everyone. WRANGLER_CI_OVERRIDE_NAME
// would rename the Worker.
const SETTINGS = {
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_LOG: "log",
  WRANGLER_WRITE_LOGS: "false",
  WRANGLER_CI_OVERRIDE_NAME: undefined,
};

type Output = "inherit" | "pipe";
type Options = { env?: NodeJS.Dict<string>; input?: string; output?: Output; errors?: Output };

/** Runs a command of Wrangler, like runNode. */
export const wrangler = (args: string[], { env, ...options }: Options = {}): string =>
  runNode(["--no-warnings", WRANGLER, ...args, "--config", WRANGLER_TOML], {
    ...options,
    env: { ...SETTINGS, ...env },
  });

/** Executes SQL in the database of an environment. */
export const executeSql = (environment: string, args: string[], options?: Options): string => {
  const flags = environment === LOCAL ? ["--local"] : ["--env", environment, "--remote"];
  return wrangler(["d1", "execute", "DB", ...flags, ...args], options);
};

/** The rows that a statement selects there. */
export const queryRows = (environment: string, sql: string): Record<string, unknown>[] =>
  JSON.parse(executeSql(environment, ["--json", "--command", sql], { output: "pipe" }))[0].results;

/**
 * Runs Node. `env` is added to the environment. What it prints appears on the terminal or, with "pipe", is returned if
 * it succeeds. Throws if it fails: with "pipe" for `errors`, with these alone.
 */
export function runNode(args: string[], { env, input, output = "inherit", errors = "inherit" }: Options): string {
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, {
    env: { ...process.env, ...env },
    ...(input && { input }),
    stdio: [input ? "pipe" : "ignore", output, errors],
    encoding: "utf8",
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (status === 0) return stdout;
  if (stdout && errors === "inherit") console.error(stdout);
  throw error ?? new Error(stderr || "The command above failed.");
}
