// Runs the project's own Wrangler. A command that has started is allowed to finish, even if the operator presses Ctrl-C:
// it is unknown how far an interrupted command got. Only a command that takes effect completely or not at all may be cut
// off.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");
const WINDOWS = process.platform === "win32";

/** A Wrangler command failed. */
export class WranglerFailed extends Error {
  /** Cloudflare's error code, if Cloudflare rejected the command. */
  readonly code: number | undefined;
  /** What the command printed, unless it was already shown. */
  readonly output: string;

  constructor(command: string, code: number | undefined, output: string) {
    // Without a terminal, Wrangler cannot ask which one; it recommends wrangler.toml, which is committed.
    const remedy = "Set CLOUDFLARE_ACCOUNT_ID to the id of one of your accounts.";
    super(`wrangler ${command} failed. ${output.includes("More than one account available") ? remedy : ""}`.trim());
    this.code = code;
    this.output = output;
  }
}

/** An entry of the file in which Wrangler reports the results of a command. */
interface Report {
  type: string;
  code?: number;
  version_id?: string;
}

export interface Finished {
  /** Its standard output. */
  output: string;
  /** The version that it uploaded, if any. */
  version: string | undefined;
}

interface Options {
  env?: NodeJS.Dict<string>;
  /** By default, everything the command prints is shown while it runs. */
  quiet?: boolean;
  /** Whether the command and all its child processes (such as its local database) are killed when this process ends. */
  cutOff?: boolean;
  /** SQL that the command runs from a file, which only its owner can read. */
  sql?: string;
}

/** Runs a command. Throws WranglerFailed. */
export async function wrangler(
  args: string[],
  { env = {}, quiet = false, cutOff = false, sql }: Options = {},
): Promise<Finished> {
  const folder = mkdtempSync(join(tmpdir(), "wrangler-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  try {
    const report = join(folder, "report.ndjson");
    const script = join(folder, "script.sql");
    if (sql !== undefined) writeFileSync(script, sql, { mode: 0o600 });
    const file = sql === undefined ? [] : ["--file", script];
    const child = spawn(process.execPath, ["--no-warnings", WRANGLER, ...args, ...file], {
      // Without the banner, Wrangler does not ask the registry for its newest version either.
      env: { ...process.env, WRANGLER_OUTPUT_FILE_PATH: report, WRANGLER_HIDE_BANNER: "true", ...env },
      // Without a terminal Wrangler asks nothing, and answers its own questions with the default.
      stdio: ["ignore", "pipe", "pipe"],
      // Out of reach of the terminal's Ctrl-C.
      detached: true,
      windowsHide: true,
    });
    const end = () => killTree(child, "SIGKILL");
    if (cutOff) process.once("exit", end);
    let output = "";
    let errors = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (!quiet) process.stdout.write(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors += text;
      if (!quiet) process.stderr.write(text);
    });
    const [status] = await once(child, "close");
    process.off("exit", end);
    const lines = existsSync(report) ? readFileSync(report, "utf8").trim().split("\n") : [];
    const reports = lines.map((line): Report => JSON.parse(line));
    if (status !== 0) {
      const { code } = reports.find(({ type }) => type === "command-failed") ?? {};
      throw new WranglerFailed(args.slice(0, 2).join(" "), code, quiet ? output + errors : "");
    }
    return { output, version: reports.find(({ version_id }) => version_id)?.version_id };
  } finally {
    remove();
    process.off("exit", remove);
  }
}

/** Ends a detached process and its child processes. On Windows, always forcibly, because process groups do not exist there. */
export function killTree({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (WINDOWS) spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"]);
  else process.kill(-pid, signal);
}
