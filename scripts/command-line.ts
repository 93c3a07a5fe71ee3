// What the commands do alike in a terminal: they reject wrong arguments with exit code 2, notice that they are
// interrupted, ask for a key without showing it, and print nothing that controls a terminal.

import { constants } from "node:os";
import { read } from "read";

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
  console.error(printable(message).trimEnd());
  process.exit(status);
}

/** Calls `react` instead of ending the process. `status`: the exit code of a process that the signal ends. */
export function onInterruption(react: (signal: string, status: number) => void): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => react(signal, 128 + constants.signals[signal]));
  }
}

export const isTerminal = (): boolean => process.stdin.isTTY && process.stderr.isTTY;

/** What the operator enters. Ctrl-C ends the process, and so does Ctrl-D, after which nothing is left to wait for. */
export async function ask(prompt: string, { silent = false } = {}): Promise<string> {
  const cancel = () => process.exit(130);
  process.once("beforeExit", cancel);
  const answer = await read({ prompt, silent, output: process.stderr }).catch(cancel);
  process.off("beforeExit", cancel);
  return answer;
}

/**
 * The API key in the environment variable API_KEY or, on a terminal, the one that the operator enters: in a command, it
 * would be in the history of the shell and in the list of processes. Empty without a terminal, or if nothing is
 * entered. Throws if it cannot be sent in a header.
 */
export async function readKey(
  prompt = "API key (not shown):",
  { API_KEY }: NodeJS.Dict<string> = process.env,
): Promise<string> {
  // A forgotten variable would be used instead of the key that is meant.
  if (API_KEY) console.error("The API key is that of the environment variable API_KEY.");
  const key = (API_KEY || (isTerminal() ? await ask(prompt, { silent: true }) : "")).trim();
  if (/^[!-~]*$/.test(key)) return key;
  throw new Error("An API key consists of letters, digits and -._~+/=.");
}

/** The text without characters that control a terminal: a file or a response can contain anything. */
export function printable(text: string): string {
  const code = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  return text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, code);
}
