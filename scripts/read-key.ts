// Reads an API key: in a command, it would be in the history of the shell and in the list of processes.

import { read } from "read";

/**
 * The key in the environment variable API_KEY or, on a terminal, the one that the operator enters. `name`: which key
 * that is. Throws if there is none, with `where` it is taken from, and if it cannot be sent in a header. Ctrl-C ends
 * the process.
 */
export async function readKey(
  name: string,
  { API_KEY }: NodeJS.Dict<string> = process.env,
  where = "enter it on a terminal, or set the environment variable API_KEY",
): Promise<string> {
  // A forgotten variable would be used instead of the key that is meant.
  if (API_KEY) console.error("Using the API key in the environment variable API_KEY.");
  const isAsked = !API_KEY && process.stdin.isTTY && process.stderr.isTTY;
  const prompt = `${name} (not shown):`;
  const ask = () => read({ prompt, silent: true, output: process.stderr }).catch(() => process.exit(130));
  const key = (isAsked ? await ask() : (API_KEY ?? "")).trim();
  if (isAsked) console.error(); // Enter was not shown either.
  if (!key) throw new Error(`An ${name} is required: ${where}.`);
  if (/^[!-~]+$/.test(key)) return key;
  throw new Error("An API key consists of visible ASCII characters.");
}
