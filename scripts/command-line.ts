// What all commands do in the same way: they reject wrong arguments with exit code 2, notice that they are interrupted,
// and print nothing that controls a terminal.

import { constants } from "node:os";

/** What `read` returns. If it throws, prints why, and how the command is used, and ends the process with 2. */
export async function readArguments<T>(
  usage: string,
  read: (args: string[], env: NodeJS.Dict<string>) => T | Promise<T>,
): Promise<T> {
  try {
    return await read(process.argv.slice(2), process.env);
  } catch (failure) {
    return exit(`${(failure as Error).message}\nusage: ${usage}`, 2);
  }
}

export function exit(message: string, status: number): never {
  console.error(printable(message));
  process.exit(status);
}

/** Calls `react` instead of ending the process. `status`: the exit code of a process that the signal ends. */
export function onInterruption(react: (signal: string, status: number) => void): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => react(signal, 128 + constants.signals[signal]));
  }
}

/** The text without characters that control a terminal: a file or a response can contain anything. */
export function printable(text: string): string {
  const code = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  return text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, code);
}
