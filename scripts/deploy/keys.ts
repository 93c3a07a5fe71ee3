// The keys that a command is given: by the variable API_KEY, or by a secrets file for Wrangler. A message never quotes one.

import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";

/** One or more keys. The newest is the last one. */
export interface Keys {
  all: string[];
  newest: string;
}

/** The keys of a secret, which is a comma-separated list. Throws with a message for the operator. */
export function parseKeys(source: string, secret = ""): Keys {
  if (!secret) throw new Error(`${source} is missing or empty.`);
  const { keys: all, invalid } = readKeys(secret);
  const newest = all.at(-1);
  if (newest && invalid.length === 0) return { all, newest };
  const rule = "a key has up to 512 letters, digits and -._~+/ characters, and may end in =";
  throw new Error(`${source} has entries that are not valid keys: ${invalid.join(", ")} (${rule}).`);
}

/** The keys of API_KEY in a file, which is JSON or has the format of .env. Throws with a message for the operator. */
export function readKeysFile(file: string): Keys {
  // Wrangler reads it again, which a pipe does not allow.
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new Error(`${file} is not a file.`);
  return parseKeys(`API_KEY in ${file}`, readSecret(file));
}

function readSecret(file: string): string {
  const text = readFileSync(file, "utf8").replace(/^\ufeff/, "");
  try {
    const { API_KEY } = text.trimStart().startsWith("{") ? JSON.parse(text) : parseEnv(text);
    if (typeof API_KEY === "string") return API_KEY;
  } catch {
    // Not the parser's message, which quotes the file.
  }
  throw new Error(`${file} must contain {"API_KEY": "<key>"}, or lines such as API_KEY=<key>.`);
}
