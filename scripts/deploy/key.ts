// The API key of a command. It comes from the environment or from the operator's keyboard, so that no procedure handles
// it in a shell, where it would be visible in the history and in the list of processes.

import { read } from "read";
import { isKey } from "../../src/http/authentication.ts";

/**
 * The key in the environment variable API_KEY or, on a terminal, the one that the operator enters. Says so if it is
 * that of the environment, because a forgotten variable would be tested instead of the key that is meant. Throws with a
 * message for the operator, which does not quote it.
 */
export async function readKey(): Promise<string> {
  const { API_KEY } = process.env;
  if (API_KEY) console.log("The API key is that of the environment variable API_KEY.");
  else if (!isTerminal()) throw new Error("Set the environment variable API_KEY to one of the service's API keys.");
  return parseKey(API_KEY || (await ask("API key (not shown):", true)));
}

/** What the operator enters. Ctrl-C ends the process, and so does Ctrl-D, after which nothing is left to wait for. */
export async function ask(prompt: string, silent = false): Promise<string> {
  const cancel = () => process.exit(130);
  process.once("beforeExit", cancel);
  const answer = await read({ prompt, silent, output: process.stderr }).catch(cancel);
  process.off("beforeExit", cancel);
  return answer;
}

export const isTerminal = (): boolean => process.stdin.isTTY && process.stderr.isTTY;

export function parseKey(text: string): string {
  const key = text.trim();
  if (isKey(key)) return key;
  throw new Error("An API key has 1 to 512 characters: letters, digits and -._~+/, and = only at its end.");
}
