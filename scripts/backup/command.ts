// What backup and restore share as commands: their arguments, their failures, and what they print.

import { onInterruption, printable, readArguments } from "../command.ts";
import { environmentNames } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { type Connection, connect, Failure, LOCAL } from "./connection.ts";

const NO_DATABASE = "This environment has no database yet. Its first deployment creates it: see docs/OPERATIONS.md.";

type Work = (store: Connection, file: string) => Promise<string>;

/**
 * Runs `npm run <name> -- <environment> <file>` and prints what `work` returns. Exits with 1 if the work fails. `again`: what
 * to do after an interruption or a failure of Wrangler.
 */
export async function command(name: string, work: Work, again: string): Promise<void> {
  const known = [LOCAL, ...environmentNames()];
  const usage = `npm run ${name} -- <${known.join("|")}> <file>`;
  const [environment, file] = readArguments(usage, (args) => parseArguments(args, known));
  const exit = (message: string, status: number) => {
    progress("");
    console.error(printable(message));
    process.exit(status);
  };
  // The default action would skip what cleans up on `exit`.
  onInterruption((_, status) => exit(`Interrupted. ${again}`, status));
  try {
    const end = await work(await connect(environment), file);
    progress("");
    console.log(printable(end));
  } catch (failure) {
    exit(explain(failure, again), 1);
  }
}

/** The environment, which must be one of `known`, and the file. Throws if the arguments are wrong. */
export function parseArguments([environment = "", file, ...more]: string[], known: string[]): [string, string] {
  if (!file || more.length > 0) throw new Error("Name one environment and one file.");
  if (known.includes(environment)) return [environment, file];
  throw new Error(`The environment must be one of ${known.join(", ")}.`);
}

/** What to tell the operator. Throws an error that is a fault of this program. */
export function explain(failure: unknown, again: string): string {
  // Such as a file that does not exist: the message is enough.
  if (failure instanceof Failure || (failure instanceof Error && "syscall" in failure)) return failure.message;
  if (!(failure instanceof WranglerFailed)) throw failure;
  if (failure.message.includes("Couldn't find a D1 DB")) return NO_DATABASE;
  const isLocked = /SQLITE_BUSY|database is locked/.test(failure.message);
  const hint = isLocked ? "\nAnother process uses the local store: stop `npm run dev` in this folder." : "";
  return `${failure.message} ${again}${hint}`;
}

/** Shows on a terminal how far the work is. */
export function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
}
