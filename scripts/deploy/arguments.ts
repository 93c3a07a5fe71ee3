// The command line of a deployment, and the secrets file that it names. A message about the file never quotes it.

import { readFileSync, statSync } from "node:fs";
import { parseArgs, parseEnv } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";
import { readEnvironment } from "../environment.ts";
import { parseBase } from "./poll.ts";

export const USAGE = `usage: API_KEY=<key> npm run deploy:<environment> [-- --wait <seconds>]
   or: npm run deploy:<environment> -- --secrets-file <file with API_KEY=<key>[,<key>…]> [--wait <seconds>]
The first deployment needs the file. It creates the database, where --location <hint> or --jurisdiction <name> says.
The smoke test uses the last key, and the base URL in SMOKE_URL (by default the address that Wrangler prints). --wait is
how long the new version may take to answer (by default 90).`;

/** Throws with a message for the operator. */
export function parseArguments(args: string[], env: NodeJS.Dict<string>) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      "secrets-file": { type: "string" },
      location: { type: "string" },
      jurisdiction: { type: "string" },
      wait: { type: "string", default: "90" },
    },
  });
  const [name, ...rest] = positionals;
  if (!name || rest.length > 0) throw new Error("Name one environment, and nothing else.");
  const { location, jurisdiction, wait, "secrets-file": file } = values;
  const place = Object.entries({ location, jurisdiction }).filter(([, value]) => value !== undefined);
  if (place.length > 1) throw new Error("Use --location or --jurisdiction, not both.");
  for (const [flag, value] of place) if (!value) throw new Error(`--${flag} must not be empty.`);
  if (!/^\d+$/.test(wait)) throw new Error("--wait must be a number of seconds.");

  const source = file === undefined ? "API_KEY" : `API_KEY in ${file}`;
  const secret = file === undefined ? env["API_KEY"] : readSecret(file);
  if (!secret) throw new Error(`${source} is missing or empty.`);
  const { keys, invalid } = readKeys(secret);
  const key = keys.at(-1);
  if (!key || invalid.length > 0) {
    const rule = "a key has up to 512 letters, digits and -._~+/ characters";
    throw new Error(`${source}: entry ${invalid.join(", ")} is not a valid key (${rule}).`);
  }
  // A workflow sets it to an empty string if its variable is not set.
  const smokeUrl = env["SMOKE_URL"] ? parseBase(env["SMOKE_URL"]) : undefined;
  if (env["SMOKE_URL"] && !smokeUrl) throw new Error("SMOKE_URL must be an http or https URL.");
  return {
    environment: readEnvironment(name),
    /** The secrets file, with its API_KEY: one key, or several separated by commas. */
    secrets: file === undefined ? undefined : { file, keys: secret },
    /** One of the environment's keys, valid after the deployment. */
    key,
    /** Where to store the data: flags of `d1 create`. */
    place: place.map(([flag, value]) => `--${flag}=${value}`),
    /** Milliseconds. */
    wait: Number(wait) * 1000,
    smokeUrl,
  };
}

/** API_KEY in a secrets file, which is JSON or has the format of .env. */
function readSecret(file: string): string | undefined {
  // Wrangler reads it again, which a pipe does not allow.
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new Error(`${file} is not a file.`);
  const text = readFileSync(file, "utf8").replace(/^\ufeff/, "");
  if (!/^\s*[[{]/.test(text)) return parseEnv(text)["API_KEY"];
  try {
    const { API_KEY } = JSON.parse(text);
    if (typeof API_KEY === "string") return API_KEY;
  } catch {
    // Not the parser's message, which quotes the file.
  }
  throw new Error(`${file} must contain {"API_KEY": "<key>"}, or lines such as API_KEY=<key>.`);
}
