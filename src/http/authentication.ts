// API keys, sent as bearer tokens (RFC 6750). Each is a secret of its own, so Wrangler's commands add, list and revoke
// one. Every secret or variable whose name begins with API_KEY is a caller's key, and no other is. API_KEY_SHOP and
// API_KEY_SHOP__2 are two keys of the caller API_KEY_SHOP, who stays the same when the second one replaces the first.
// Keys are compared in constant time, in buffers of one fixed length and with every valid key, so that timing reveals
// neither a length nor a common prefix.

import { type ApiKey, logHourly } from "./api-key.ts";
import { ApiError, FAILED } from "./errors.ts";
import { logFailure, logUse } from "./log.ts";
import { KEY_NAME_HEADER } from "./responses.ts";
import type { IncomingRequest } from "./routing.ts";

export const CHALLENGE = 'Bearer realm="animal-store"';
export const INVALID_TOKEN = `${CHALLENGE}, error="invalid_token"`;
export const KEY_REQUIRED = "An API key is required: send it as Authorization: Bearer <API_KEY>.";
export const KEY_INVALID = "The API key is not valid.";

/** RFC 6750, section 2.1, with the flag that browsers give to a `pattern`. */
export const B64TOKEN = /[\w.~+\/\-]+=*/v;
// Characters of a key, of one byte each. Guesses are not limited, so a key that can be guessed is not valid.
const MIN_LENGTH = 16;
const MAX_LENGTH = 512;
const KEY = RegExp(`^(?=.{${MIN_LENGTH},${MAX_LENGTH}}$)${B64TOKEN.source}$`);

/** The names of secrets that can have a key. The group is the caller: without the numbers after two underscores. */
export const SECRET_NAME = /^(API_KEY(?:_[A-Za-z0-9][A-Za-z0-9_]{0,55}?)??)(?:__[0-9]+)*$/;

/** The caller whose key is in the secret with this name. Undefined if such a secret cannot have a key. */
export const callerOf = (name: string): string | undefined => SECRET_NAME.exec(name)?.[1];

interface ValidKey extends ApiKey {
  /** In a buffer of the fixed length. */
  bytes: Uint8Array;
}

/** The secrets whose names start like that of a key, as this isolate has read them. One without a key is ignored. */
const secrets = new Map<string, { value: unknown; key: ValidKey | undefined }>();

// Shared by all requests, because no other request can run between filling and comparing it.
const sentKey = new Uint8Array(MAX_LENGTH);

let lastRequestHadKeys = true;

/** Finds the API key of the request. Throws 401 if it is not valid, and 500 if no secret is a valid key. */
export function authenticate(incoming: IncomingRequest, env: Env): void {
  const { request } = incoming;
  const [, credentials = ""] = /^Bearer +(.*)$/is.exec(request.headers.get("Authorization") ?? "") ?? [];
  const { keys, ignored } = readSecrets(env);
  const apiKey = findKey(credentials, keys);
  for (const name of ignored) logFailure("configuration", whyIgnored(name), request, apiKey?.caller);
  logMissingKeys(keys, request);
  if (!apiKey) throw refusalOf(credentials, keys);
  incoming.apiKey = apiKey;
  logHourly(apiKey, "use", () => logUse(apiKey.name, apiKey.caller));
}

/** Logs that no secret is a valid key, but not for each request, because strangers can send them. */
function logMissingKeys(keys: ValidKey[], request: Request): void {
  const hasKeys = keys.length > 0;
  if (lastRequestHadKeys && !hasKeys) logFailure("internal_error", "No secret is a valid key: set API_KEY.", request);
  lastRequestHadKeys = hasKeys;
}

/** Why a request that has none of these keys is rejected. */
function refusalOf(credentials: string, keys: ValidKey[]): ApiError {
  if (keys.length === 0) return new ApiError("internal_error", FAILED.internal_error);
  if (!credentials) return new ApiError("api_key_missing", KEY_REQUIRED, { "WWW-Authenticate": CHALLENGE });
  // Two headers arrive joined by a comma, which a key cannot contain.
  const problem = credentials.includes(",") ? "Send one Authorization header, with one API key." : KEY_INVALID;
  return new ApiError("api_key_invalid", problem, { "WWW-Authenticate": INVALID_TOKEN });
}

/** Names the key of a request in its response, if the key is valid. */
export function addKeyName(response: Response, { apiKey }: IncomingRequest): void {
  if (apiKey) response.headers.set(KEY_NAME_HEADER, apiKey.name);
}

/** The valid keys, and the names of secrets that are ignored and that this isolate has not seen before. */
function readSecrets(env: Env) {
  const keys: ValidKey[] = [];
  const ignored: string[] = [];
  for (const name in env) {
    if (!/^API_KEY/i.test(name)) continue;
    const value: unknown = Reflect.get(env, name);
    let secret = secrets.get(name);
    // The bindings of a running isolate may change.
    if (!secret || secret.value !== value) {
      secret = { value, key: keyIn(name, value) };
      secrets.set(name, secret);
      if (!secret.key) ignored.push(name);
    }
    if (secret.key) keys.push(secret.key);
  }
  return { keys, ignored };
}

/** The key that was sent, if it is valid. If several secrets have it, the one whose name sorts first. */
function findKey(credentials: string, keys: ValidKey[]): ApiKey | undefined {
  pad(sentKey, credentials);
  // Every key is compared: to stop at the first match would reveal which one it was.
  const equal = keys.filter(({ bytes }) => crypto.subtle.timingSafeEqual(bytes, sentKey));
  const [first] = equal.sort((a, b) => (a.name < b.name ? -1 : 1));
  return isKey(credentials) ? first : undefined;
}

function keyIn(name: string, value: unknown): ValidKey | undefined {
  const caller = callerOf(name);
  const isValid = caller && typeof value === "string" && isKey(value);
  return isValid ? { name, caller, bytes: pad(new Uint8Array(MAX_LENGTH), value) } : undefined;
}

const NAME = "the name of a key is API_KEY_, in capitals, and then up to 56 letters, digits and underscores";
const VALUE = `a key has ${MIN_LENGTH} to ${MAX_LENGTH} letters, digits and -._~+/, and = only at its end`;

export const whyIgnored = (name: string): string => `Secret ${name} is ignored: ${callerOf(name) ? VALUE : NAME}.`;

export const isKey = (text: string): boolean => KEY.test(text);

const encoder = new TextEncoder();

/** Fills a buffer of the fixed length. A longer text is truncated; it is not a valid key. */
function pad(buffer: Uint8Array, text: string): Uint8Array {
  encoder.encodeInto(text, buffer.fill(0));
  return buffer;
}
