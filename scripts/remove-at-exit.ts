// Copies of animals that a program makes for a moment.

import { rmSync } from "node:fs";

/**
 * Removes a file when this program ends, even by Ctrl-C, by SIGTERM, or because its terminal closes. By default, Node
 * would end at once. With a listener, it waits for the command that it runs, which Ctrl-C ends, too.
 */
export function removeAtExit(file: string): void {
  process.once("exit", () => rmSync(file, { force: true }));
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(name, (_, number) => process.exit(128 + number));
}
