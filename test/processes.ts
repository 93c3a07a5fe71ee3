// Runs the commands of tests and measurements. Everything that a command started ends with it, and at the latest when
// this process exits, unless that is killed.

import { type ChildProcess, type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";

type Command = ChildProcessByStdio<null, Readable, Readable>;

const WINDOWS = process.platform === "win32";

/** Starts a command; `env` is added to the environment of this process. */
export function launch(command: string, args: string[], folder: string, env: NodeJS.Dict<string> = {}): Command {
  // On Windows, npm and the commands of packages are scripts, which only a shell can run.
  const line = WINDOWS
    ? [command, ...args].map((word) => (word.includes(" ") ? `"${word}"` : word)).join(" ")
    : command;
  const child = spawn(line, WINDOWS ? [] : args, {
    cwd: folder,
    env: Object.assign({ ...process.env }, env),
    shell: WINDOWS,
    detached: !WINDOWS,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const end = () => killTree(child, "SIGKILL");
  process.once("exit", end);
  child.once("exit", () => process.off("exit", end));
  return child;
}

/** Ends the command and everything that it started. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  killTree(child, "SIGTERM");
  await ended;
}

/** The exit code of a command, and what it printed. */
export async function outcome(child: Command): Promise<{ status: number | null; output: string; errors: string }> {
  const ended = new Promise<number | null>((done, fail) => child.once("error", fail).once("close", done));
  const [output, errors, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { status, output, errors };
}

/**
 * Runs a command line on a terminal, with the command `script` of Linux, and types each answer after its question. The
 * exit code, and what it showed.
 */
export async function onTerminal(
  line: string,
  answers: Record<string, string>,
  folder = ".",
  env: NodeJS.Dict<string> = {},
): Promise<{ status: number | null; output: string }> {
  const args = ["--quiet", "--return", "--command", line, "/dev/null"];
  const child = spawn("script", args, { cwd: folder, env: { ...process.env, ...env } });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
    for (const [question, answer] of Object.entries(answers)) {
      if (String(data).includes(question)) child.stdin.write(answer);
    }
  });
  const [status] = await once(child, "close");
  return { status, output };
}

/**
 * Ends a detached process and its child processes. On Windows, always forcibly, because process groups do not exist
 * there.
 */
function killTree({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (WINDOWS) spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"]);
  else process.kill(-pid, signal);
}
