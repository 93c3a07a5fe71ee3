// What a deployment is told by its arguments and by the environment.

import { parseArgs } from "node:util";
import { readEnvironment } from "../environment.ts";
import { parseKeys, readKeysFile } from "./keys.ts";

export const USAGE = `API_KEY=<key> npm run deploy:<environment> [-- --wait <seconds, by default 90>]
   or: npm run deploy:<environment> -- --secrets-file <file> [--revoke-all-keys] [--location <hint> | --jurisdiction <name>] [--wait <seconds>]
See "Deploy" in docs/OPERATIONS.md.`;

export type Arguments = ReturnType<typeof parseArguments>;

/** Throws with a message for the operator. */
export function parseArguments(args: string[], env: NodeJS.Dict<string>) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      "secrets-file": { type: "string" },
      "revoke-all-keys": { type: "boolean", default: false },
      location: { type: "string" },
      jurisdiction: { type: "string" },
      wait: { type: "string", default: "90" },
    },
  });
  const [name = "", ...rest] = positionals;
  if (rest.length > 0) throw new Error("Too many arguments. Write --location=<hint> or --jurisdiction=<name> in full.");
  const { location, jurisdiction, wait, "secrets-file": secretsFile } = values;
  const place = Object.entries({ location, jurisdiction }).filter(([, value]) => value !== undefined);
  if (place.length > 1) throw new Error("Use --location or --jurisdiction, not both.");
  if (!/^\d+$/.test(wait)) throw new Error("--wait must be a number of seconds.");
  return {
    environment: readEnvironment(name),
    secretsFile,
    /** Those of the secrets file. Without one, those in API_KEY, which the environment must have already. */
    keys: secretsFile === undefined ? parseKeys("API_KEY", env["API_KEY"]) : readKeysFile(secretsFile),
    /** Whether the environment may lose all its keys, so that all callers are rejected. */
    revokesAllKeys: values["revoke-all-keys"],
    /** Where to store the data: a flag of `d1 create`. */
    place: place.map(([flag, value]) => `--${flag}=${value}`),
    /** Milliseconds. */
    wait: Number(wait) * 1000,
    // A workflow sets it to an empty string if its variable is not set.
    smokeUrl: env["SMOKE_URL"] ? parseBase("SMOKE_URL", env["SMOKE_URL"]) : undefined,
  };
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
