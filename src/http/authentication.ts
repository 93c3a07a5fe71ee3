// API keys, sent as bearer tokens (RFC 6750). Each is a secret of its own, so Wrangler's commands add, list and revoke one. They are
// compared in constant time, in buffers of one fixed length and with every valid key, so that timing reveals neither a length
// nor a common prefix. If no secret has a valid key, every request gets a 500.

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

/** Throws 401 unless the request has the key of one of the secrets, and an Error if none of them is a valid key. */
export function authenticate({ request }: Context, env: Env): void {
  const valid = keysIn(env, request);
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

type SecretName = "API_KEY" | `API_KEY_${string}`;

export const isSecretName = (name: string): name is SecretName => /^API_KEY(_.+)?$/.test(name);

// Each secret as it was when a request last came, with its key if that is valid. The bindings of a running isolate may change, so
// the values are compared for every request.
const prepared = new Map<SecretName, { value: unknown; key: Uint8Array | undefined }>();

function keysIn(env: Env, request: Request): Uint8Array[] {
  const keys: Uint8Array[] = [];
  for (const name in env) {
    const key = isSecretName(name) && keyOf(name, env[name], request);
    if (key) keys.push(key);
  }
  if (keys.length === 0) throw new Error("No secret has a valid key: set API_KEY.");
  return keys;
}

/** The key of a secret, unless it is not valid. That is logged once, because a flood of requests would fill a billed log. */
function keyOf(name: SecretName, value: unknown, request: Request): Uint8Array | undefined {
  const last = prepared.get(name);
  if (last && last.value === value) return last.key;
  const key = typeof value === "string" && isKey(value) ? pad(new Uint8Array(MAX_LENGTH), value) : undefined;
  prepared.set(name, { value, key });
  if (!key) logFailure("configuration", `Secret ${name} is not a valid key and is ignored.`, request);
  return key;
}

export const isKey = (text: string): boolean => text.length <= MAX_LENGTH && TOKEN.test(text);

const encoder = new TextEncoder();

/** Fills a buffer of the fixed length. A longer text is truncated; it is not a valid key. */
function pad(buffer: Uint8Array, text: string): Uint8Array {
  encoder.encodeInto(text, buffer.fill(0));
  return buffer;
}
