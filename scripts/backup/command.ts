// What backup and restore share as commands: their arguments, their failures, and what they print.

import { onInterruption, printable, readArguments } from "../command.ts";
import { environmentNames } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { connect, Failure, LOCAL, type Store } from "./store.ts";

const AGAIN = "It did not finish. Run the same command again; a restore continues where it stopped.";
const NO_DATABASE = "This environment has no database yet. Its first deployment creates it: see docs/OPERATIONS.md.";

/** Runs `npm run <name> -- <environment> <file>` and prints what `work` returns. Exits with 1 if the work fails. */
export async function command(name: string, work: (store: Store, file: string) => Promise<string>): Promise<void> {
  const known = [LOCAL, ...environmentNames()];
  const usage = `npm run ${name} -- <${known.join("|")}> <file>`;
  const [environment, file] = readArguments(usage, (args) => parseArguments(args, known));
  const exit = (message: string, status: number) => {
    progress("");
    console.error(printable(message));
    process.exit(status);
  };
  // The default action would skip what cleans up on `exit`.
  onInterruption((_, status) => exit(`Interrupted. ${AGAIN}`, status));
  try {
    const end = await work(await connect(environment), file);
    progress("");
    console.log(printable(end));
  } catch (failure) {
    exit(explain(failure), 1);
  }
}

/** Throws if the arguments are wrong. */
export function parseArguments(
  [environment = "", file, ...more]: string[],
  known = [LOCAL, ...environmentNames()],
): [environment: string, file: string] {
  if (known.includes(environment) && file && more.length === 0) return [environment, file];
  throw new Error("Name exactly one environment and one file.");
}

/** What to tell the operator. Throws an error that is a fault of this program. */
export function explain(failure: unknown): string {
  // Such as a file that does not exist: the message is enough.
  if (failure instanceof Failure || (failure instanceof Error && "syscall" in failure)) return failure.message;
  if (!(failure instanceof WranglerFailed)) throw failure;
  if (failure.message.includes("Couldn't find a D1 DB")) return NO_DATABASE;
  const isLocked = /SQLITE_BUSY|database is locked/.test(failure.message);
  const hint = isLocked ? "\nAnother process uses the local store: stop `npm run dev` in this folder." : "";
  return `${failure.message} ${AGAIN}${hint}`;
}

/** Shows on a terminal how far the work is. */
export function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
}
