// What backup and restore share as commands: their arguments, their failures, and what they print.

import { tmpdir } from "node:os";
import { exit, onInterruption, printable, readArguments } from "../command-line.ts";
import { environmentNames, LOCAL } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { type Connection, connect } from "./connection.ts";
import { Failure } from "./lines.ts";

type Work = (store: Connection, file: string, hasFlag: boolean) => Promise<string>;

/**
 * Runs `npm run <name> -- <environment> <file>` and prints what `work` returns. Exits with 1 if the work fails. `again`: what
 * to do after an interruption or a failure of Wrangler. `flag`: the only one that the command takes.
 */
export async function command(name: string, work: Work, again: string, flag?: string): Promise<void> {
  const known = [LOCAL, ...environmentNames()];
  const usage = `npm run ${name} -- <${known.join("|")}> <file>${flag ? ` [${flag}]` : ""}`;
  const [environment, file, hasFlag] = readArguments(usage, (args) => parseArguments(args, known, flag));
  // The default action would skip what cleans up on `exit`.
  onInterruption((_, status) => exit(`Interrupted. ${again}`, status));
  try {
    console.log(printable(await work(await connect(environment), file, hasFlag)));
  } catch (failure) {
    exit(explain(failure, again, file), 1);
  }
}

/** The environment, which must be one of `known`, the file, and whether the flag is set. Throws if they are wrong. */
export function parseArguments(args: string[], known: string[], flag?: string): [string, string, boolean] {
  const [environment = "", file, ...more] = args.filter((argument) => argument !== flag);
  if (known.includes(environment) && file && more.length === 0) return [environment, file, args.length > 2];
  throw new Error(`Name one environment (${known.join(", ")}) and one file.`);
}

/** What to tell the operator. Throws an error that is a fault of this program. */
export function explain(failure: unknown, again: string, file: string): string {
  const { message } = failure as Error;
  // Neither Node nor SQLite names the file, which can also be a temporary one.
  if (/ENOSPC|disk is full/.test(message)) return `${message}: the disk of ${file} or of ${tmpdir()} is full.`;
  // Such as a file that does not exist: the message is enough.
  if (failure instanceof Failure || (failure instanceof Error && "syscall" in failure)) return message;
  if (!(failure instanceof WranglerFailed)) throw failure;
  if (!message.includes("Couldn't find a D1 DB")) return `${message} ${again}`;
  return "This environment has no database yet. Its first deployment creates it: see docs/OPERATIONS.md.";
}
