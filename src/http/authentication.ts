// API keys, sent as bearer tokens (RFC 6750). Each is a secret of its own, so Wrangler's commands add, list and revoke
// one. Every secret or variable whose name begins with API_KEY is a caller's key, and no other is. A caller is that
// name without two underscores and a number at its end, so it stays the same when a second key replaces the first. Keys
// are compared in constant time, in buffers of one fixed length and with every valid key, so that timing reveals
// neither a length nor a common prefix.

import { ApiError, INTERNAL } from "./errors.ts";
import { logFailure, logUse } from "./log.ts";
import type { Context } from "./routing.ts";

export const CHALLENGE = 'Bearer realm="animal-store"';
export const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token"`;
export const KEY_REQUIRED = "An API key is required: send it as Authorization: Bearer <API_KEY>.";

const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/; // b64token, RFC 6750, section 2.1
// Characters of a key, of one byte each. Guesses are not limited, so a key that can be guessed is not valid.
const MIN_LENGTH = 16;
const MAX_LENGTH = 512;
const HOUR = 3_600_000; // milliseconds

/** The name of a caller, as the table checks it, too. */
export const CALLER_NAME = /^API_KEY(_\w{1,56})?$/;

/** The caller whose key is in the secret with this name: without all of its numbers. */
export const callerOf = (keyName: string): string => keyName.replace(/(__\d+)+$/, "");

/** Whether a secret with this name can have a key. Such a name is also the value of a response header. */
export const isSecretName = (name: string): boolean => CALLER_NAME.test(callerOf(name));

/** What this isolate knows of a secret whose name starts like that of a key. */
interface Secret {
  value: unknown;
  /** Undefined if the secret is not a valid key. */
  key: Uint8Array | undefined;
  caller: string;
  /** When each event with this key was last logged. */
  loggedAt: Map<string, number>;
}

const secrets = new Map<string, Secret>();

// Shared by all requests, because no other request can run between filling and comparing it.
const presented = new Uint8Array(MAX_LENGTH);

let isLogged = false;

/**
 * Writes into the context which secret the request has the key of, and its caller. Throws 401 if there is none, and 500
 * if no secret is a valid key.
 */
export function authenticate(context: Context, env: Env): void {
  const { request } = context;
  const [, credentials = ""] = /^Bearer +(.*)$/is.exec(request.headers.get("Authorization") ?? "") ?? [];
  const { keyName, hasKey, ignored } = findKey(credentials, env);
  const caller = secrets.get(keyName)?.caller;
  context.keyName = keyName;
  context.caller = caller;
  for (const name of ignored) logFailure("configuration", whyIgnored(name), request, caller);
  // Once, until a secret is a valid key, because strangers can cause it.
  if (!hasKey && !isLogged) logFailure("internal_error", "No secret is a valid key: set API_KEY.", request);
  isLogged = !hasKey;
  if (!hasKey) throw new ApiError("internal_error", INTERNAL);
  if (!credentials) throw new ApiError("unauthorized", KEY_REQUIRED, { "WWW-Authenticate": CHALLENGE });
  if (!caller) {
    // Two headers arrive joined by a comma, which a key cannot contain.
    const problem = credentials.includes(",")
      ? "Send one Authorization header, with one API key."
      : "The API key is not valid.";
    throw new ApiError("unauthorized", problem, { "WWW-Authenticate": INVALID_TOKEN });
  }
  if (isDue("use", keyName)) logUse(keyName, caller);
}

/**
 * The name of the secret that has this key, or empty; if several have it, the one that sorts first. Whether any secret
 * is a valid key. And the names of those that are ignored, if this isolate has not seen them before.
 */
function findKey(credentials: string, env: Env) {
  let found = "";
  let hasKey = false;
  const ignored: string[] = [];
  const canMatch = isKey(credentials);
  pad(presented, credentials);
  for (const name in env) {
    if (!/^API_KEY/i.test(name)) continue;
    const value: unknown = Reflect.get(env, name);
    let secret = secrets.get(name);
    // The bindings of a running isolate may change.
    if (!secret || secret.value !== value) {
      secret = { value, key: keyIn(name, value), caller: callerOf(name), loggedAt: new Map() };
      secrets.set(name, secret);
      if (!secret.key) ignored.push(name);
    }
    if (!secret.key) continue;
    hasKey = true;
    // Every key is compared: to stop at the first match would reveal which one it was.
    const isEqual = crypto.subtle.timingSafeEqual(secret.key, presented);
    if (isEqual && canMatch && (!found || name < found)) found = name;
  }
  return { keyName: found, hasKey, ignored };
}

/** Whether an event is to be logged, which then counts as logged: at most once an hour for each key in this isolate. */
export function isDue(event: string, keyName: string): boolean {
  const loggedAt = secrets.get(keyName)?.loggedAt;
  const now = Date.now();
  if (now - (loggedAt?.get(event) ?? Number.NEGATIVE_INFINITY) < HOUR) return false;
  loggedAt?.set(event, now);
  return true;
}

function keyIn(name: string, value: unknown): Uint8Array | undefined {
  const isValid = isSecretName(name) && typeof value === "string" && isKey(value);
  return isValid ? pad(new Uint8Array(MAX_LENGTH), value) : undefined;
}

const NAME = "the name of a key is API_KEY_, in capitals, and then up to 56 letters, digits and underscores";
const VALUE = `a key has ${MIN_LENGTH} to ${MAX_LENGTH} letters, digits and -._~+/, and = only at its end`;

const whyIgnored = (name: string): string => `Secret ${name} is ignored: ${isSecretName(name) ? VALUE : NAME}.`;

const isKey = (text: string): boolean => text.length >= MIN_LENGTH && text.length <= MAX_LENGTH && TOKEN.test(text);

const encoder = new TextEncoder();

/** Fills a buffer of the fixed length. A longer text is truncated; it is not a valid key. */
function pad(buffer: Uint8Array, text: string): Uint8Array {
  encoder.encodeInto(text, buffer.fill(0));
  return buffer;
}
