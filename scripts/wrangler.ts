// Runs the project's own Wrangler. A command that has started is allowed to finish, even if the operator presses Ctrl-C:
// it is unknown how far an interrupted command got. Only the end of this process cuts it off. This file also has
// what the callers of such commands share: temporary files and retries.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");

// Without the banner, Wrangler does not ask the registry for its newest version either. At this log level, it prints the version
// and the addresses of a deployment. Its log files would keep copies of whole stores, readable by everyone.
const OUTPUT = { WRANGLER_HIDE_BANNER: "true", WRANGLER_LOG: "log", WRANGLER_WRITE_LOGS: "false" };

// Wrangler recommends an account that soon disappears, and an id in wrangler.toml, which is committed.
const REMEDIES = {
  "set a CLOUDFLARE_API_TOKEN": "Run npx wrangler login, or set the CLOUDFLARE_API_TOKEN environment variable.",
  "More than one account": "You have several accounts. Set CLOUDFLARE_ACCOUNT_ID to the id of one: npx wrangler whoami",
};

/** A Wrangler command failed. The message contains what it printed, or the remedy. */
export class WranglerFailed extends Error {
  constructor(command: string, output: string) {
    const printed = stripVTControlCharacters(output).trim();
    const [, remedy = printed] = Object.entries(REMEDIES).find(([part]) => printed.includes(part)) ?? [];
    super(`${remedy}\nwrangler ${command} failed.`.trim());
  }
}

/**
 * Runs a command without showing what it prints. Returns its standard output. The command and its child processes (such as
 * a local database) end with this process. Throws WranglerFailed.
 */
export async function wrangler(args: string[], env: NodeJS.Dict<string> = {}): Promise<string> {
  const child = spawn(process.execPath, ["--no-warnings", WRANGLER, ...args], {
    env: { ...process.env, ...OUTPUT, ...env },
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
  if (status !== 0) throw new WranglerFailed(args.slice(0, 2).join(" "), output + errors);
  return output;
}

/** Calls `use` with a file that only its owner can read, in a folder whose name starts with `prefix`. Only SIGKILL leaves it behind. */
export async function withFile<T>(prefix: string, content: string, use: (file: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const file = join(folder, "file");
  writeFileSync(file, content, { mode: 0o600 });
  return use(file).finally(() => {
    remove();
    process.off("exit", remove);
  });
}

export const TRIES = 5;

/** Tries five times what one bad response must not end: again after `pause` milliseconds, then after twice as many. Throws the last failure. */
export async function insist<T>(work: () => Promise<T>, pause: number, isWorthIt = (_: unknown) => true): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (failure) {
      if (tries === TRIES || !isWorthIt(failure)) throw failure;
      await setTimeout(pause * 2 ** (tries - 1));
    }
  }
}

/** Ends a detached process and its child processes. On Windows, always forcibly, because process groups do not exist there. */
export function killTree({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (process.platform === "win32") spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"]);
  else process.kill(-pid, signal);
}
