// Copies of animals, or of the project, that a program makes for a moment.

import { rmSync } from "node:fs";

/**
 * Removes a file or folder when this program ends, even by Ctrl-C, by SIGTERM, or because its terminal closes. By
 * default, Node would end at once. With listeners, it waits for the command that it runs, which Ctrl-C ends, too.
 */
export function removeAtExit(path: string): void {
  process.once("exit", () => {
    try {
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    } catch (failure) {
      console.error(`${path} was not removed: ${(failure as Error).message}`);
    }
  });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, (_, number) => process.exit(128 + number));
}
