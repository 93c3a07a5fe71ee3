// What backup and restore share as commands: their arguments, and how they end.

import { exit, onInterruption, printable, readArguments } from "../command-line.ts";
import { ENVIRONMENTS, LOCAL } from "../environment.ts";
import { WranglerFailed } from "../wrangler.ts";
import { openStore, type Store } from "./wrangler-store.ts";

type Work = (store: Store, file: string) => Promise<string>;

/**
 * Runs `npm run <name> -- <environment> <file>`, and prints what `work` returns. Exits with 1 if it fails. `next`: what
 * to do after an interruption or a failure of Wrangler.
 */
export async function command(name: string, work: Work, next: string) {
  const known = [LOCAL, ...ENVIRONMENTS];
  const usage = `npm run ${name} -- <${known.join("|")}> <file>`;
  const [environment, file] = await readArguments(usage, (args) => parseArguments(args, known));
  // The default action would skip what cleans up on `exit`.
  onInterruption((_, status) => exit(`Interrupted. ${next}`, status));
  try {
    console.log(printable(await work(await openStore(environment), file)));
  } catch (failure) {
    const { message } = failure as Error;
    // The other messages say what to do.
    exit(failure instanceof WranglerFailed ? `${message}\n${next}` : message, 1);
  }
}

/** The environment, which must be one of `known`, and the file. Throws if they are wrong. */
export function parseArguments([environment = "", file, ...more]: string[], known: string[]): [string, string] {
  if (known.includes(environment) && file && more.length === 0) return [environment, file];
  throw new Error("Name one environment and one file.");
}
