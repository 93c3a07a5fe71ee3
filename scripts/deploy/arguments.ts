// What a deployment and the smoke test are told: by their arguments, by the environment, and by a secrets file. A message
// never quotes a secret.

import { readFileSync, statSync } from "node:fs";
import { parseArgs, parseEnv } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";
import { readEnvironment } from "../environment.ts";

export const USAGE = `API_KEY=<key> npm run deploy:<environment> [-- --wait <seconds, by default 90>]
   or: npm run deploy:<environment> -- --secrets-file <file> [--location <hint> | --jurisdiction <name>] [--wait <seconds>]
See "Deploy" in docs/OPERATIONS.md.`;

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
  if (!name || rest.length > 0) throw new Error("Name exactly one environment.");
  const { location, jurisdiction, wait, "secrets-file": file } = values;
  const place = Object.entries({ location, jurisdiction }).filter(([, value]) => value !== undefined);
  if (place.length > 1) throw new Error("Use --location or --jurisdiction, not both.");
  for (const [flag, value] of place) if (!value) throw new Error(`--${flag} must not be empty.`);
  if (!/^\d+$/.test(wait)) throw new Error("--wait must be a number of seconds.");
  const keys = file === undefined ? env["API_KEY"] : readSecret(file);
  return {
    environment: readEnvironment(name),
    /** The secrets file, with its API_KEY: one key, or several separated by commas. */
    secrets: file === undefined ? undefined : { file, keys },
    /** One of the environment's keys, valid after the deployment. */
    key: lastKey(file === undefined ? "API_KEY" : `API_KEY in ${file}`, keys),
    /** Where to store the data: flags of `d1 create`. */
    place: place.map(([flag, value]) => `--${flag}=${value}`),
    /** Milliseconds. */
    wait: Number(wait) * 1000,
    // A workflow sets it to an empty string if its variable is not set.
    smokeUrl: env["SMOKE_URL"] ? parseBase("SMOKE_URL", env["SMOKE_URL"]) : undefined,
  };
}

/** A base URL, without a slash at its end. Throws with a message for the operator, which may not quote a password in it. */
export function parseBase(source: string, text: string): string {
  const url = URL.parse(text);
  const base = url && url.origin + url.pathname.replace(/\/+$/, "");
  if (!base || !/^https?:\/\/.*\/v1$/.test(base))
    throw new Error(`${source} must be an http or https URL that ends in /v1.`);
  return base;
}

/** The base URL at the address that Wrangler printed. A workers.dev address works at once, a new domain some minutes later. */
export function printedBase(output: string): string | undefined {
  const [, host] = /https:\/\/(\S+\.workers\.dev)$/m.exec(output) ?? /(\S+) \(custom domain/.exec(output) ?? [];
  return host && `https://${host}/v1`;
}

/** The newest key of a secret. Throws with a message for the operator. */
export function lastKey(source: string, secret = ""): string {
  if (!secret) throw new Error(`${source} is missing or empty.`);
  const { keys, invalid } = readKeys(secret);
  const key = keys.at(-1);
  if (key && invalid.length === 0) return key;
  const rule = "a key has up to 512 letters, digits and -._~+/ characters, and may end in =";
  throw new Error(`${source} has entries that are not valid keys: ${invalid.join(", ")} (${rule}).`);
}

/** API_KEY in a secrets file, which is JSON or has the format of .env. */
function readSecret(file: string): string {
  // Wrangler reads it again, which a pipe does not allow.
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new Error(`${file} is not a file.`);
  const text = readFileSync(file, "utf8").replace(/^\ufeff/, "");
  try {
    const { API_KEY } = text.trimStart().startsWith("{") ? JSON.parse(text) : parseEnv(text);
    if (typeof API_KEY === "string") return API_KEY;
  } catch {
    // Not the parser's message, which quotes the file.
  }
  throw new Error(`${file} must contain {"API_KEY": "<key>"}, or lines such as API_KEY=<key>.`);
}
