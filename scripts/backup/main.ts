// What backup and restore share as commands: their arguments, their failures, and what they print.

import { onInterruption, printable, readArguments } from "../command-line.ts";
import { environmentNames } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { type Connection, connect, LOCAL } from "./connection.ts";
import { Failure } from "./lines.ts";

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
    console.error(printable(message));
    process.exit(status);
  };
  // The default action would skip what cleans up on `exit`.
  onInterruption((_, status) => exit(`Interrupted. ${again}`, status));
  try {
    console.log(printable(await work(await connect(environment), file)));
  } catch (failure) {
    exit(explain(failure, again), 1);
  }
}

/** The environment, which must be one of `known`, and the file. Throws if the arguments are wrong. */
export function parseArguments([environment = "", file, ...more]: string[], known: string[]): [string, string] {
  if (known.includes(environment) && file && more.length === 0) return [environment, file];
  throw new Error(`Name one environment (${known.join(", ")}) and one file.`);
}

/** What to tell the operator. Throws an error that is a fault of this program. */
export function explain(failure: unknown, again: string): string {
  // Such as a file that does not exist: the message is enough.
  if (failure instanceof Failure || (failure instanceof Error && "syscall" in failure)) return failure.message;
  if (!(failure instanceof WranglerFailed)) throw failure;
  if (!failure.message.includes("Couldn't find a D1 DB")) return `${failure.message} ${again}`;
  return "This environment has no database yet. Its first deployment creates it: see docs/OPERATIONS.md.";
}
