// The keys that a command is given: by the variable API_KEY, or by a secrets file for Wrangler. A message never quotes one.

import { readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";

/** The keys of a secret, which is a comma-separated list. The newest is the last one. Throws with a message for the operator. */
export function parseKeys(source: string, secret = "") {
  if (!secret) throw new Error(`${source} is missing or empty.`);
  const { keys: all, invalid } = readKeys(secret);
  const newest = all.at(-1);
  if (newest && invalid.length === 0) return { all, newest };
  const rule = "a key has up to 512 letters, digits and -._~+/ characters, and may end in =";
  throw new Error(`${source} has entries that are not valid keys: ${invalid.join(", ")} (${rule}).`);
}

/** The keys in a file with the line API_KEY=…, and no other. Throws with a message for the operator. */
export function readKeysFile(file: string) {
  // Wrangler reads it again, which a pipe does not allow.
  if (!statSync(file).isFile()) throw new Error(`${file} is not a file.`);
  const { API_KEY, ...others } = parseEnv(readFileSync(file, "utf8"));
  // Wrangler would upload them too, as secrets of the Worker.
  if (Object.keys(others).length > 0) throw new Error(`${file} must contain only the line API_KEY=<key>.`);
  return parseKeys(`The line API_KEY=<key> in ${file}`, API_KEY);
}
