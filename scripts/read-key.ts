// Reads an API key: in a command, it would be in the history of the shell and in the list of processes.

import { read } from "read";

const REMEDY = "enter it on a terminal, or set the environment variable API_KEY";

/** The key in the environment variable API_KEY or, on a terminal, the one that the operator enters. */
export async function readKey(name: string, { API_KEY }: NodeJS.Dict<string> = process.env): Promise<string> {
  if (!API_KEY) return enterKey(name, REMEDY);
  // A forgotten variable would be used instead of the key that is meant.
  console.error("Using the API key in the environment variable API_KEY.");
  return checkedKey(API_KEY);
}

/** The key that the operator enters. Throws with the remedy if there is no terminal. Ctrl-C ends the process. */
export async function enterKey(name: string, remedy: string): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new Error(`An ${name} is required: ${remedy}.`);
  const question = { prompt: `${name} (not shown):`, silent: true, output: process.stderr };
  const key = await read(question).catch(() => process.exit(130));
  console.error(); // Enter was not shown either.
  return checkedKey(key);
}

function checkedKey(text: string): string {
  const key = text.trim();
  if (/^[!-~]+$/.test(key)) return key;
  throw new Error("An API key consists of visible ASCII characters.");
}
