// What backup, restore and merge share as commands: their arguments, and how they end.

import { exit, onInterruption, printable, readArguments } from "../command-line.ts";
import { ENVIRONMENTS, LOCAL } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";

/** An argument, for `usage`. */
export const ENVIRONMENT = `<${[LOCAL, ...ENVIRONMENTS].join("|")}>`;

/**
 * Calls `work` with the arguments that `usage` names, and prints what it returns. Exits with 2 if the arguments are
 * wrong, and with 1 if `work` fails. `next`: what to do after an interruption or a failure of Wrangler.
 */
export async function command(usage: string, work: (...args: string[]) => Promise<string>, next: string) {
  const args = await readArguments(usage, (args) => checkArguments(usage, args));
  // The default action would skip what cleans up on `exit`.
  onInterruption((_, status) => exit(`Interrupted. ${next}`, status));
  try {
    console.log(printable(await work(...args)));
  } catch (failure) {
    const { message } = failure as Error;
    // The other messages say what to do.
    exit(failure instanceof WranglerFailed ? `${message}\n${next}` : message, 1);
  }
}

/** Throws unless there is one argument for each name in angle brackets, which can be a choice: `<a|b>`. */
export function checkArguments(usage: string, args: string[]): string[] {
  const names = usage.match(/(?<=<)[^>]+/g) ?? [];
  const fits = (arg: string, at: number) => arg && (!names[at]?.includes("|") || names[at].split("|").includes(arg));
  if (args.length === names.length && args.every(fits)) return args;
  throw new Error("The arguments are wrong.");
}
