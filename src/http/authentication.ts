// API keys, sent as bearer tokens (RFC 6750). They are compared in constant time, in buffers of one fixed length and with every
// valid key, so that timing reveals neither a length nor a common prefix. Without a valid key in the secret, every request gets
// a 500.

import { ApiError } from "./errors.ts";
import { logFailure } from "./log.ts";
import type { Context } from "./routing.ts";

export const CHALLENGE = 'Bearer realm="animal-store"';
export const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token"`;
export const KEY_REQUIRED = "An API key is required: send it as Authorization: Bearer <API_KEY>.";

const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/; // b64token, RFC 6750, section 2.1
const MAX_LENGTH = 512; // characters of a key, of one byte each

// Shared by all requests, because no other request can run between filling and comparing it.
const presented = new Uint8Array(MAX_LENGTH);

/** Throws 401 unless the request has one of the keys in `API_KEY`, and an Error if that secret has no valid key. */
export function authenticate({ request }: Context, env: Env): void {
  const valid = keysOf(env.API_KEY, request);
  const [, credentials] = /^Bearer +(.*)$/is.exec(request.headers.get("Authorization") ?? "") ?? [];
  if (!credentials) throw new ApiError("unauthorized", KEY_REQUIRED, { "WWW-Authenticate": CHALLENGE });
  pad(presented, credentials);
  // Not `some`, which stops at the first match and so reveals which key it was.
  const matches = valid.filter((key) => crypto.subtle.timingSafeEqual(key, presented));
  if (matches.length === 0 || !isKey(credentials)) {
    // Two headers arrive joined by a comma, which a key cannot contain.
    const problem = credentials.includes(",")
      ? "Send one Authorization header, with one API key."
      : "The API key is not valid.";
    throw new ApiError("unauthorized", problem, { "WWW-Authenticate": INVALID_TOKEN });
  }
}

// Prepared once, because the secret does not change while an isolate lives. Tests change it.
let prepared: { secret: string | undefined; keys: Uint8Array[] } | undefined;

function keysOf(secret: string | undefined, request: Request): Uint8Array[] {
  if (!prepared || prepared.secret !== secret) {
    const { keys, problem } = readKeys(secret ?? "");
    prepared = { secret, keys: keys.map((key) => pad(new Uint8Array(MAX_LENGTH), key)) };
    // If no entry is valid, every request logs the failure below.
    if (problem && keys.length > 0)
      logFailure("configuration", `Secret API_KEY is partly ignored: ${problem}.`, request);
  }
  if (prepared.keys.length === 0) throw new Error("The secret API_KEY is missing or has no valid key.");
  return prepared.keys;
}

/** The valid keys of a secret, which is a comma-separated list, and which of its other entries, counted from 1, are a problem. */
export function readKeys(secret: string): { keys: string[]; problem: string } {
  const entries = secret.split(",").map((entry) => entry.trim());
  const invalid = entries.flatMap((entry, index) => (isKey(entry) ? [] : [index + 1]));
  const places = invalid.join(", ");
  const problem = invalid.length > 1 ? `entries ${places} are not valid keys` : `entry ${places} is not a valid key`;
  return { keys: entries.filter(isKey), problem: invalid.length > 0 ? problem : "" };
}

const isKey = (text: string): boolean => text.length <= MAX_LENGTH && TOKEN.test(text);

const encoder = new TextEncoder();

/** Fills a buffer of the fixed length. A longer text is truncated; it is not a valid key. */
function pad(buffer: Uint8Array, text: string): Uint8Array {
  encoder.encodeInto(text, buffer.fill(0));
  return buffer;
}
