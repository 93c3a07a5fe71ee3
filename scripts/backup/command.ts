// What backup and restore share as commands: their arguments, their failures, and what they print.

import { constants } from "node:os";
import { environmentNames } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { connect, Failure, LOCAL, type Store } from "./store.ts";

const AGAIN = "It did not finish. Run the same command again: a restore then continues.";

/** The command was called with wrong arguments. */
export class Usage extends Failure {}

/**
 * Runs `npm run <name> -- <environment> <file>` and prints what `work` returns. Exits with 2 if the arguments are wrong, with
 * 1 if the work fails, and with 128 plus the number of a signal that interrupts it.
 */
export async function command(name: string, work: (store: Store, file: string) => Promise<string>): Promise<void> {
  const exit = (message: string, status: number) => {
    progress("");
    console.error(printable(message));
    process.exit(status);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // The default action would skip what cleans up on `exit`.
    process.once(signal, () => exit(`Interrupted. ${AGAIN}`, 128 + constants.signals[signal]));
  }
  try {
    const [environment, file] = readArguments(name, process.argv.slice(2));
    const end = await work(await connect(environment), file);
    progress("");
    console.log(printable(end));
  } catch (error) {
    exit(explain(error), error instanceof Usage ? 2 : 1);
  }
}

/** Throws Usage. */
export function readArguments(
  name: string,
  [environment, file, ...more]: string[],
): [environment: string, file: string] {
  const names = [LOCAL, ...environmentNames()];
  if (environment && names.includes(environment) && file && more.length === 0) return [environment, file];
  throw new Usage(`usage: npm run ${name} -- <${names.join("|")}> <file>`);
}

/** What to tell the operator. Throws an error that is a fault of this program. */
export function explain(error: unknown): string {
  // Such as a file that does not exist: the message is enough.
  if (error instanceof Failure || (error instanceof Error && "syscall" in error)) return error.message;
  if (!(error instanceof WranglerFailed)) throw error;
  const isLocked = /SQLITE_BUSY|database is locked/.test(error.output);
  const hint = isLocked ? "\nAnother process uses the local store: stop `npm run dev` in this folder." : "";
  return `${error.output.trim()}\n${error.message} ${AGAIN}${hint}`;
}

/** The text without characters that control a terminal: a file can contain anything. */
export function printable(text: string): string {
  const code = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  return text.replace(/[^\P{C}\n]|[\u2028\u2029]/gu, code);
}

/** Shows on a terminal how far the work is. */
export function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
}
