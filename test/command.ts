// The commands that tests and measurements run, each in a process group of its own: all that it has started ends with it, and nothing
// outlives this process.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";

type Command = ChildProcessByStdio<null, Readable, Readable>;

export function launch(command: string, args: string[], folder: string): Command {
  const child = spawn(command, args, { cwd: folder, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const kill = () => child.pid && process.kill(-child.pid, "SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
  return child;
}

/** What the command prints. Throws with it when the command fails. */
export async function run(command: string, args: string[], folder = "."): Promise<string> {
  const child = launch(command, args, folder);
  const ended = new Promise((done, fail) => child.once("error", fail).once("close", done));
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${output}${errors}`);
  return output;
}
