// Runs the project's own Wrangler. A command that has started is allowed to finish, even if the operator presses Ctrl-C:
// it is unknown how far an interrupted command got. Only a command that takes effect completely or not at all may be cut
// off.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");

/** A Wrangler command failed. The message contains what it printed. */
export class WranglerFailed extends Error {
  constructor(command: string, output: string) {
    // Without a terminal, Wrangler cannot ask which account to use, and it recommends wrangler.toml, which is committed.
    const remedy = "Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts.";
    const failed = `wrangler ${command} failed. ${output.includes("More than one account available") ? remedy : ""}`;
    super(`${output.trim()}\n${failed}`.trim());
  }
}

interface Options {
  env?: NodeJS.Dict<string>;
  /** Whether the command and all its child processes (such as its local database) are killed when this process ends. */
  cutOff?: boolean;
}

/** Runs a command without showing what it prints. Returns its standard output. Throws WranglerFailed. */
export async function wrangler(args: string[], { env = {}, cutOff = false }: Options = {}): Promise<string> {
  const child = spawn(process.execPath, ["--no-warnings", WRANGLER, ...args], {
    // Without the banner, Wrangler does not ask the registry for its newest version either. At this log level, it prints
    // the version and the addresses of a deployment.
    env: { ...process.env, WRANGLER_HIDE_BANNER: "true", WRANGLER_LOG: "log", ...env },
    // Without a terminal Wrangler asks nothing, and answers its own questions with the default.
    stdio: ["ignore", "pipe", "pipe"],
    // Out of reach of the terminal's Ctrl-C.
    detached: true,
    windowsHide: true,
  });
  const end = () => killTree(child, "SIGKILL");
  if (cutOff) process.once("exit", end);
  const ended = [text(child.stdout), text(child.stderr), once(child, "close")] as const;
  const [output, errors, [status]] = await Promise.all(ended);
  process.off("exit", end);
  if (status !== 0) throw new WranglerFailed(args.slice(0, 2).join(" "), output + errors);
  return output;
}

/** Ends a detached process and its child processes. On Windows, always forcibly, because process groups do not exist there. */
export function killTree({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (process.platform === "win32") spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"]);
  else process.kill(-pid, signal);
}
