// Runs the project's own Wrangler. A command that has begun is let finish, even when the operator presses Ctrl-C: what
// one that was cut off has done, nobody knows. What is done whole or not at all may be cut off.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Not import.meta.resolve, which Vitest lacks where it sets up.
const WRANGLER = createRequire(import.meta.url).resolve("wrangler");
const WINDOWS = process.platform === "win32";

/** A command of Wrangler has failed, and has said why. */
export class WranglerFailed extends Error {
  /** Cloudflare's code of the error, if it was Cloudflare that refused. */
  readonly code: number | undefined;
  /** What the command printed and nobody has seen yet. */
  readonly output: string;

  constructor(command: string, code: number | undefined, output: string) {
    super(`wrangler ${command} failed.`);
    this.code = code;
    this.output = output;
  }
}

/** What Wrangler reports of a command. */
interface Report {
  type: string;
  code?: number;
  version_id?: string;
}

export interface Finished {
  /** What it printed to the standard output. */
  output: string;
  /** The version that it uploaded, if any. */
  version: string | undefined;
}

interface Options {
  env?: NodeJS.Dict<string>;
  /** Unless it is quiet, what the command prints is shown as it comes. */
  quiet?: boolean;
  /** Whether it ends with this process, however far it is, and all that it has started: its local database, for one. */
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
      env: { ...process.env, WRANGLER_OUTPUT_FILE_PATH: report, ...env },
      // Nothing is asked: what Wrangler would ask a person, it takes for granted.
      stdio: ["ignore", "pipe", "pipe"],
      // Out of the reach of the terminal's Ctrl-C.
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
    const reports: Report[] = existsSync(report)
      ? readFileSync(report, "utf8")
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
      : [];
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

/** Ends a detached process and everything it started. Windows has no process groups: there the whole tree ends at once. */
export function killTree({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (WINDOWS) spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"]);
  else process.kill(-pid, signal);
}
