// Runs the project's own Wrangler. Ctrl-C in a terminal does not reach it: it ends with this process, which can wait
// for it.

import { type ChildProcess, type StdioOptions, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");

// Passed to every command: otherwise a wrangler.json in any folder above would win.
const WRANGLER_TOML = join(import.meta.dirname, "../wrangler.toml");

// Without the banner, Wrangler does not ask the registry for its newest version either. Below this log level, it would
// not print JSON. Its log files would keep copies of whole stores, readable by everyone. The last one would rename the
// Worker.
const SETTINGS = {
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_LOG: "log",
  WRANGLER_WRITE_LOGS: "false",
  WRANGLER_CI_OVERRIDE_NAME: undefined,
};

/** Starts a command of Wrangler, like startNode. */
export const startWrangler = (args: string[], stdio: StdioOptions, env: NodeJS.Dict<string> = {}) =>
  startNode(["--no-warnings", WRANGLER, ...args, "--config", WRANGLER_TOML], stdio, { ...SETTINGS, ...env });

/**
 * Starts Node out of reach of the terminal's signals. `env` is added to this process' environment. The process and what
 * it starts end with this process at the latest.
 */
export function startNode(args: string[], stdio: StdioOptions, env: NodeJS.Dict<string>): ChildProcess {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio,
    detached: true,
    windowsHide: true,
  });
  const end = () => killTree(child, "SIGKILL");
  process.once("exit", end);
  child.once("close", () => process.off("exit", end));
  return child;
}

// Failures that repeating the command does not end, and what to do instead. What Wrangler itself advises would do harm
// here: an account that is deleted soon, an id in wrangler.toml, which is committed, or a database that is created near
// this computer and cannot be moved.
const REMEDIES: [RegExp, string][] = [
  [/string or blob too big/, "$&: a row, or a page of rows, is too large for one answer of D1."],
  [/set a CLOUDFLARE_API_TOKEN/, "Run npx wrangler login, or set the CLOUDFLARE_API_TOKEN environment variable."],
  [/More than one account/, "Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts: npx wrangler whoami"],
  [
    /Couldn't find a D1 DB named '([\w-]+)'/,
    `The database $1 does not exist in this account (npx wrangler whoami).
If it has existed: "The database is gone" in docs/OPERATIONS.md.
If not, create it, in a location that cannot be changed later: "Set up an environment" in docs/SETUP.md.`,
  ],
];

/** A Wrangler command failed. The message contains what it printed, or the remedy. */
export class WranglerFailed extends Error {
  readonly hasRemedy: boolean;

  constructor(command: string, output: string) {
    const printed = stripVTControlCharacters(output).trim();
    const [pattern = "", remedy = ""] = REMEDIES.find(([pattern]) => pattern.test(printed)) ?? [];
    const [found] = printed.match(pattern) ?? [];
    const failed = `wrangler ${command} failed.`;
    super(remedy ? `${failed} ${found?.replace(pattern, remedy)}` : `${printed}\n${failed}`.trim());
    this.hasRemedy = remedy !== "";
  }
}

/**
 * Runs a command without showing what it prints, and returns its standard output. Without a terminal, Wrangler answers
 * its own questions with the default. Throws WranglerFailed.
 */
export async function wrangler(args: string[]): Promise<string> {
  const child = startWrangler(args, ["ignore", "pipe", "pipe"]);
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error("Wrangler was started without its output.");
  const [output, errors, [status]] = await Promise.all([text(stdout), text(stderr), once(child, "close")]);
  if (status === 0) return output;
  throw new WranglerFailed(
    args
      .slice(0, 2)
      .filter((arg) => !arg.startsWith("-"))
      .join(" "),
    output + errors,
  );
}

/**
 * Ends a detached process and its child processes. On Windows, always forcibly, because process groups do not exist
 * there.
 */
export function killTree({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (process.platform === "win32") spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"]);
  else process.kill(-pid, signal);
}
