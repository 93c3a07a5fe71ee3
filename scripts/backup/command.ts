// What backup and restore share as commands: how they are called, how they fail, and what they show on the way.

import { clearLine, cursorTo } from "node:readline";
import { ENVIRONMENTS, type Environment, Failure } from "./store.ts";
import { WranglerFailed } from "../wrangler.ts";

/**
 * Runs `npm run <name> -- <environment> <file>`; `work` gives the line to end with. Exits with 2 where it is called
 * wrongly, with 1 where it fails, with 130 where it is interrupted.
 */
export async function command(
  name: string,
  work: (environment: Environment, file: string) => Promise<string>,
): Promise<void> {
  const [environment = "", file, ...more]: string[] = process.argv.slice(2);
  if (!isEnvironment(environment) || !file || more.length > 0) {
    console.error(`usage: npm run ${name} -- <${Object.keys(ENVIRONMENTS).join("|")}> <file>`);
    return process.exit(2);
  }
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      progress("");
      console.error(`Interrupted: the ${name} is not complete, or could not be checked.`);
      // The default would skip what clears up on `exit`.
      process.exit(130);
    });
  }
  try {
    const end = await work(environment, file);
    progress("");
    console.log(end);
  } catch (error) {
    if (!(error instanceof Failure || error instanceof WranglerFailed || isSystemError(error))) throw error;
    progress("");
    if (error instanceof WranglerFailed) console.error(error.output);
    console.error(error.message);
    process.exit(1);
  }
}

/** Shows how far the work is, on a terminal only. */
export function progress(what: string): void {
  if (!process.stderr.isTTY) return;
  cursorTo(process.stderr, 0);
  clearLine(process.stderr, 0);
  process.stderr.write(what);
}

function isEnvironment(name: string): name is Environment {
  return Object.hasOwn(ENVIRONMENTS, name);
}

/** Such as a file that is not there, whose message says all. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "syscall" in error;
}
