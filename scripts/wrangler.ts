// Runs the project's own Wrangler. A command that has started is allowed to finish, even if the operator presses Ctrl-C:
// it is unknown how far an interrupted command got. Only the end of this process cuts it off.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");

/** A Wrangler command failed. The message contains what it printed. */
export class WranglerFailed extends Error {
  constructor(command: string, output: string) {
    super(`${explain(stripVTControlCharacters(output).trim())}\nwrangler ${command} failed.`.trim());
  }
}

/** What Wrangler printed, with the remedy where its own is wrong here. */
function explain(output: string): string {
  // Wrangler recommends --temporary, which deploys to an account that soon disappears.
  if (output.includes("set a CLOUDFLARE_API_TOKEN environment variable")) {
    return "You are not signed in to Cloudflare. Run npx wrangler login, or set the CLOUDFLARE_API_TOKEN environment variable.";
  }
  // Without a terminal, it cannot ask which account to use, and recommends wrangler.toml, which is committed.
  if (output.includes("More than one account available")) {
    return `${output}\nSet CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts.`;
  }
  return output;
}

/**
 * Runs a command without showing what it prints. Returns its standard output. The command and its child processes (such as
 * a local database) end with this process. Throws WranglerFailed.
 */
export async function wrangler(args: string[], env: NodeJS.Dict<string> = {}): Promise<string> {
  const child = spawn(process.execPath, ["--no-warnings", WRANGLER, ...args], {
    env: {
      ...process.env,
      // Without the banner, Wrangler does not ask the registry for its newest version either.
      WRANGLER_HIDE_BANNER: "true",
      // At this level it prints the version and the addresses of a deployment.
      WRANGLER_LOG: "log",
      // Its log files would keep copies of whole stores, readable by everyone.
      WRANGLER_WRITE_LOGS: "false",
      ...env,
    },
    // Without a terminal Wrangler asks nothing, and answers its own questions with the default.
    stdio: ["ignore", "pipe", "pipe"],
    // Out of reach of the terminal's Ctrl-C.
    detached: true,
    windowsHide: true,
  });
  const end = () => killTree(child, "SIGKILL");
  process.once("exit", end);
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
