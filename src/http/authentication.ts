// API keys, sent as bearer tokens (RFC 6750). Each is a secret of its own, so Wrangler's commands add, list and revoke
// one, and its name tells callers apart. Keys are compared in constant time, in buffers of one fixed length and with
// every valid key, so that timing reveals neither a length nor a common prefix.

import { ApiError, INTERNAL } from "./errors.ts";
import { logFailure, logUse } from "./log.ts";
import type { Context } from "./routing.ts";

export const CHALLENGE = 'Bearer realm="animal-store"';
export const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token"`;
export const KEY_REQUIRED = "An API key is required: send it as Authorization: Bearer <API_KEY>.";

const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/; // b64token, RFC 6750, section 2.1
const MAX_LENGTH = 512; // characters of a key, of one byte each
const HOUR = 3_600_000; // milliseconds

/** Whether a secret with this name can have a key. Such a name is also the value of a response header. */
export const isSecretName = (name: string): boolean => /^API_KEY(_\w+)?$/.test(name);

/** What this isolate knows of a secret. */
interface Secret {
  name: string;
  value: unknown;
  /** Undefined if the secret is not a valid key. */
  key: Uint8Array | undefined;
  /** When its use, or that it is ignored, was logged. */
  loggedAt: number;
}

const secrets = new Map<string, Secret>();

// Shared by all requests, because no other request can run between filling and comparing it.
const presented = new Uint8Array(MAX_LENGTH);

/**
 * Writes the caller into the context: the name of the secret that the request has the key of. Throws 401 if there is
 * none, and 500 if no secret is a valid key.
 */
export function authenticate(context: Context, env: Env): void {
  const known = secretsIn(env);
  const [, credentials] = /^Bearer +(.*)$/is.exec(context.request.headers.get("Authorization") ?? "") ?? [];
  const secret = credentials ? secretWith(credentials, known) : undefined;
  context.caller = secret?.name;
  logIgnored(known, context);
  requireKey(known, context);
  if (!credentials) throw new ApiError("unauthorized", KEY_REQUIRED, { "WWW-Authenticate": CHALLENGE });
  if (!secret) {
    // Two headers arrive joined by a comma, which a key cannot contain.
    const problem = credentials.includes(",")
      ? "Send one Authorization header, with one API key."
      : "The API key is not valid.";
    throw new ApiError("unauthorized", problem, { "WWW-Authenticate": INVALID_TOKEN });
  }
  if (Date.now() - secret.loggedAt < HOUR) return;
  secret.loggedAt = Date.now();
  logUse(secret.name);
}

/**
 * The secrets that are meant to have a key. The bindings of a running isolate may change, so their values are compared.
 */
function secretsIn(env: Env): Secret[] {
  const found: Secret[] = [];
  for (const name in env) {
    if (!/^API_KEY(_|$)/.test(name)) continue;
    const value: unknown = Reflect.get(env, name);
    let secret = secrets.get(name);
    if (!secret || secret.value !== value) {
      const isValid = isSecretName(name) && typeof value === "string" && isKey(value);
      const key = isValid ? pad(new Uint8Array(MAX_LENGTH), value) : undefined;
      secret = { name, value, key, loggedAt: Number.NEGATIVE_INFINITY };
      secrets.set(name, secret);
    }
    found.push(secret);
  }
  return found;
}

/** The secret that has this key. If several have it, the first one. */
function secretWith(credentials: string, known: Secret[]): Secret | undefined {
  pad(presented, credentials);
  // Not `find`, which stops at the first match and so reveals which key it was.
  const [match] = known.filter(({ key }) => key && crypto.subtle.timingSafeEqual(key, presented));
  return isKey(credentials) ? match : undefined;
}

/** Logs each secret that is ignored, once: a line for each request could fill the log. */
function logIgnored(known: Secret[], { request, caller }: Context): void {
  for (const secret of known) {
    if (secret.key || secret.loggedAt > Number.NEGATIVE_INFINITY) continue;
    secret.loggedAt = Date.now();
    const rule = isSecretName(secret.name)
      ? "is not a valid key"
      : "needs a name of API_KEY_ and then letters, digits and underscores,";
    logFailure("configuration", `Secret ${secret.name} ${rule} and is ignored.`, request, caller);
  }
}

let isLogged = false;

/** Throws 500 if no secret is a valid key. Logs that once, until one is: strangers can cause it. */
function requireKey(known: Secret[], { request }: Context): void {
  const hasKey = known.some(({ key }) => key);
  if (!hasKey && !isLogged) logFailure("internal_error", "No secret is a valid key: set API_KEY.", request);
  isLogged = !hasKey;
  if (!hasKey) throw new ApiError("internal_error", INTERNAL);
}

export const isKey = (text: string): boolean => text.length <= MAX_LENGTH && TOKEN.test(text);

const encoder = new TextEncoder();

/** Fills a buffer of the fixed length. A longer text is truncated; it is not a valid key. */
function pad(buffer: Uint8Array, text: string): Uint8Array {
  encoder.encodeInto(text, buffer.fill(0));
  return buffer;
}
