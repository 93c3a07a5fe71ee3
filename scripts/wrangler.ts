// Runs the project's own Wrangler. A command that has started is allowed to finish, even if the operator presses
// Ctrl-C: it is unknown how far an interrupted command got. Only the end of this process cuts it off.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");

// Passed to every command: otherwise a wrangler.json in any folder above would win.
export const WRANGLER_TOML = join(import.meta.dirname, "../wrangler.toml");

// Without the banner, Wrangler does not ask the registry for its newest version either. Below this log level, it would
// not print JSON. Its log files would keep copies of whole stores, readable by everyone.
const OUTPUT = { WRANGLER_HIDE_BANNER: "true", WRANGLER_LOG: "log", WRANGLER_WRITE_LOGS: "false" };

// Failures that repeating the command does not end, and what to do instead. What Wrangler itself advises would do harm
// here: an account that is deleted soon, an id in wrangler.toml, which is committed, or a database that is created near
// this computer and cannot be moved.
const REMEDIES: [RegExp, string][] = [
  [/string or blob too big/, "$&: a row, or a page of rows, is too large for one answer of D1."],
  [/set a CLOUDFLARE_API_TOKEN/, "Run npx wrangler login, or set the CLOUDFLARE_API_TOKEN environment variable."],
  [
    /Worker "([\w-]+)" \(env: ([\w-]+)\) not found/,
    `The Worker $1 does not exist in this account (npx wrangler whoami). Create its database, if that does not exist
either ("Set up an environment" in docs/OPERATIONS.md), and the Worker:\nnpx wrangler secret put API_KEY --env $2`,
  ],
  [/More than one account/, "Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts: npx wrangler whoami"],
  [
    /Couldn't find a D1 DB named '([\w-]+)'/,
    `The database $1 does not exist in this account (npx wrangler whoami). Create it, in a location that cannot be
changed later ("Set up an environment" in docs/OPERATIONS.md):\nnpx wrangler d1 create $1 --location=<location>`,
  ],
  [/.*code: 7404.*/, '$&\nThe database was deleted: see "Remove or move an environment" in docs/OPERATIONS.md.'],
  // 10021: it throws when it starts.
  [/[\s\S]*(Build failed|Running custom build|code: 10021)[\s\S]*/, "$&\nCorrect the commit, and deploy."],
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

export interface Options {
  /** Added to the environment variables. */
  env?: NodeJS.Dict<string>;
  /** Gets what a command that succeeds prints to its standard error, such as warnings. */
  warn?: (text: string) => void;
}

/**
 * Runs a command without showing what it prints. Returns its standard output. The command and its child processes (such
 * as a local database) end with this process. Throws WranglerFailed.
 */
export async function wrangler(args: string[], { env, warn }: Options = {}): Promise<string> {
  const child = spawn(process.execPath, ["--no-warnings", WRANGLER, ...args, "--config", WRANGLER_TOML], {
    env: { ...process.env, ...OUTPUT, WRANGLER_CI_OVERRIDE_NAME: undefined, ...env },
    // Without a terminal Wrangler asks nothing, and answers its own questions with the default.
    stdio: ["ignore", "pipe", "pipe"],
    // Out of reach of the terminal's Ctrl-C.
    detached: true,
    windowsHide: true,
  });
  const end = () => killTree(child, "SIGKILL");
  process.once("exit", end);
  const [output, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  process.off("exit", end);
  if (status !== 0) {
    const command = args.slice(0, 2).filter((arg) => !arg.startsWith("-"));
    throw new WranglerFailed(command.join(" "), output + errors);
  }
  if (errors.trim()) warn?.(stripVTControlCharacters(errors).trim());
  return output;
}

/**
 * Tries what can be repeated until Wrangler does not fail: again after `pause` milliseconds, then after twice as many.
 * Not if the failure has a remedy. Throws the last failure.
 */
export async function retry<T>(work: () => Promise<T>, pause: number, tries = 5): Promise<T> {
  try {
    return await work();
  } catch (failure) {
    if (tries === 1 || !(failure instanceof WranglerFailed) || failure.hasRemedy) throw failure;
    await setTimeout(pause);
    return retry(work, pause * 2, tries - 1);
  }
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
