// The command line of a deployment, and the secrets file that it names. A message about the file never quotes it.

import { isUtf8 } from "node:buffer";
import { readFileSync, statSync } from "node:fs";
import { parseArgs, parseEnv } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";
import { type Environment, readEnvironment } from "../environment.ts";
import { parseBase } from "./poll.ts";

const USAGE = `usage: API_KEY=<key> npm run deploy:<environment> [-- --wait <seconds>]
   or: npm run deploy:<environment> -- --secrets-file <file with API_KEY=<key>[,<key>…]> [--wait <seconds>]
The first deployment needs the file. It creates the database, where --location <hint> or --jurisdiction <name> says.
The smoke test uses the last key, and the base URL in SMOKE_URL or else the one that Wrangler prints. --wait is how long
the new version may take to answer (90 by default).`;

export interface DeployArguments {
  environment: Environment;
  secrets?: {
    file: string;
    /** API_KEY as in the file: one key, or several separated by commas. */
    keys: string;
  };
  /** One of the environment's keys, valid after the deployment. */
  key: string;
  /** Where to store the data: flags of `d1 create`. */
  place: string[];
  /** Milliseconds. */
  wait: number;
  smokeUrl?: string;
}

/** Ends the process with 2 if the arguments are wrong. */
export function readArguments(): DeployArguments {
  try {
    return parseArguments(process.argv.slice(2), process.env);
  } catch (failure) {
    console.error(`${(failure as Error).message}\n${USAGE}`);
    process.exit(2);
  }
}

/** Throws with a message for the operator. */
export function parseArguments(args: string[], env: NodeJS.Dict<string>): DeployArguments {
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
    ...(file !== undefined && { secrets: { file, keys: secret } }),
    key,
    place: place.map(([flag, value]) => `--${flag}=${value}`),
    wait: Number(wait) * 1000,
    ...(smokeUrl && { smokeUrl }),
  };
}

/** API_KEY in a secrets file, which is JSON or has the format of .env. */
function readSecret(file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats) throw new Error(`${file} does not exist.`);
  // Wrangler reads it again, so a pipe does not do.
  if (!stats.isFile()) throw new Error(`${file} is not a regular file.`);
  const bytes = readFileSync(file);
  if (!isUtf8(bytes)) throw new Error(`${file} is not UTF-8 text.`);
  const text = new TextDecoder().decode(bytes); // without a byte order mark
  let secrets: unknown;
  try {
    secrets = JSON.parse(text);
  } catch {
    if (/^\s*[[{]/.test(text)) throw new Error(`${file} is not valid JSON.`);
    return parseEnv(text)["API_KEY"];
  }
  if (typeof secrets !== "object" || secrets === null || Array.isArray(secrets)) {
    throw new Error(`${file} must contain a JSON object, or lines such as API_KEY=<key>.`);
  }
  const secret: unknown = Reflect.get(secrets, "API_KEY");
  if (secret !== undefined && typeof secret !== "string") throw new Error(`API_KEY in ${file} must be a JSON string.`);
  return secret;
}
