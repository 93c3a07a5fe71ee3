// What a deployment is told by its arguments and by the environment.

import { parseArgs } from "node:util";
import { readKeys } from "../../src/http/authentication.ts";
import { readEnvironment } from "../environment.ts";

export const USAGE = `API_KEY=<key> npm run deploy:<environment> [-- --wait <seconds, by default 90>]
   or: npm run deploy:<environment> -- --new-key|--set-keys [--location <hint> | --jurisdiction <name>] [--wait <seconds>]
See "Deploy" in docs/OPERATIONS.md.`;

// The choices of `wrangler d1 create`, checked before a new key is printed.
const PLACE = /^--(location=(weur|eeur|wnam|enam|apac|oc)|jurisdiction=(eu|us|fedramp))$/;

export type Arguments = ReturnType<typeof parseArguments>;

/** Throws with a message for the operator. */
export function parseArguments(args: string[], env: NodeJS.Dict<string>) {
  const { API_KEY, SMOKE_URL, GITHUB_ACTIONS, GITHUB_OUTPUT } = env;
  // npm takes a flag for its own, without a word to this command, if nothing separates them.
  if (Object.keys(env).some((name) => /^npm_config_(new_key|set_keys|revoke_all_keys)$/.test(name))) {
    throw new Error("Write -- before the flags.");
  }
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      "new-key": { type: "boolean", default: false },
      "set-keys": { type: "boolean", default: false },
      "revoke-all-keys": { type: "boolean", default: false },
      location: { type: "string" },
      jurisdiction: { type: "string" },
      wait: { type: "string", default: "90" },
    },
  });
  const [name = "", ...rest] = positionals;
  if (rest.length > 0) throw new Error("Too many arguments. A place is --location=<hint> or --jurisdiction=<name>.");
  const { location, jurisdiction, wait, "new-key": adds, "set-keys": sets, "revoke-all-keys": revokesAll } = values;
  const places = Object.entries({ location, jurisdiction }).filter(([, value]) => value !== undefined);
  const place = places.map(([flag, value]) => `--${flag}=${value}`);
  if (place.length > 0 && !PLACE.test(place.join())) {
    throw new Error("Use --location=weur|eeur|wnam|enam|apac|oc or --jurisdiction=eu|us|fedramp, not both.");
  }
  if (!/^\d+$/.test(wait)) throw new Error("--wait must be a number of seconds.");
  if (adds && sets) throw new Error("Use --new-key or --set-keys, not both.");
  if (revokesAll && !adds && !sets) throw new Error("--revoke-all-keys needs --new-key or --set-keys.");
  if (adds && revokesAll && API_KEY) throw new Error("Unset API_KEY: a revoked key might be in it. Or use --set-keys.");
  if (adds && GITHUB_ACTIONS) throw new Error("--new-key prints a key, which the log of a workflow would keep.");
  return {
    environment: readEnvironment(name),
    /** `adds`: a new key joins those `given`. `change`: they become the environment's. `revokesAll`: even if all its own are removed. */
    keys: { given: adds && !API_KEY ? [] : parseKeys(API_KEY), adds, change: adds || sets, revokesAll },
    /** Where to store the data: a flag of `d1 create`. */
    place,
    /** Milliseconds. */
    wait: Number(wait) * 1000,
    // A workflow sets it to an empty string if its variable is not set.
    smokeUrl: SMOKE_URL ? parseBase("SMOKE_URL", SMOKE_URL) : undefined,
    githubOutput: GITHUB_OUTPUT,
  };
}

/** The keys in API_KEY, which is a comma-separated list. The newest is the last one. Throws with a message that quotes none. */
export function parseKeys(API_KEY = ""): string[] {
  if (!API_KEY) throw new Error("API_KEY is missing or empty.");
  const { keys, problem } = readKeys(API_KEY);
  if (!problem) return [...new Set(keys)];
  throw new Error(`API_KEY: ${problem} (a key has up to 512 letters, digits and -._~+/ characters, and may end in =).`);
}

const THIS_MACHINE = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * A base URL, without a slash at its end. A key sent over plain HTTP can be read on the way, so that is possible only on this
 * machine. Throws with a message for the operator, which may not quote a password in it.
 */
export function parseBase(source: string, text: string): string {
  const url = URL.parse(text);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && THIS_MACHINE.test(url.hostname));
  const path = url?.pathname.replace(/\/+$/, "") ?? "";
  if (url && isSafe && path.endsWith("/v1")) return url.origin + path;
  throw new Error(`${source} must be an https URL that ends in /v1, or an http URL of localhost.`);
}
