// Bearer keys (RFC 6750). A key is compared in a buffer of one fixed length, in constant time and with every key that is
// valid, so that neither its length nor a shared prefix can be timed. Without a usable secret nobody is admitted.

import { ApiError } from "./errors.ts";
import { logFailure } from "./log.ts";
import type { ApiRequest } from "./routing.ts";

export const CHALLENGE = 'Bearer realm="animal-store"';
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/; // b64token, RFC 6750, section 2.1
const LONGEST = 512; // characters of a key, which are bytes

/** Throws 401 unless the request carries one of the keys of `API_KEY`, and an Error while that secret holds none. */
export function authenticate({ request }: ApiRequest, env: Env): void {
  const valid = keysOf(env.API_KEY, request);
  const [, credentials] = /^Bearer +(.*)$/i.exec(request.headers.get("Authorization") ?? "") ?? [];
  if (!credentials) {
    throw new ApiError("unauthorized", "An API key is required: send it as Authorization: Bearer <API_KEY>.", {
      "WWW-Authenticate": CHALLENGE,
    });
  }
  const presented = padded(credentials);
  // Not `some`: it would stop at the first match and so tell which key it was.
  const matches = valid.filter((key) => crypto.subtle.timingSafeEqual(key, presented));
  if (matches.length === 0 || !isKey(credentials)) {
    throw new ApiError("unauthorized", "The API key is not valid.", {
      "WWW-Authenticate": `${CHALLENGE}, error="invalid_token"`,
    });
  }
}

// Made once for each secret that the isolate sees, which is one.
let known: { secret: string | undefined; keys: Uint8Array[] } | undefined;

function keysOf(secret: string | undefined, request: Request): Uint8Array[] {
  if (!known || known.secret !== secret) {
    const entries = (secret ?? "").split(",").map((entry) => entry.trim());
    known = { secret, keys: entries.filter(isKey).map(padded) };
    const wrong = entries.flatMap((entry, index) => (isKey(entry) ? [] : [index + 1]));
    // Where no entry is a key, every request says so below.
    if (wrong.length > 0 && known.keys.length > 0) {
      logFailure(
        "configuration",
        `Of the secret API_KEY, entry ${wrong.join(", ")} can be no key: it admits nobody.`,
        request,
      );
    }
  }
  if (known.keys.length === 0) throw new Error("The secret API_KEY is missing or holds no key: nobody is admitted.");
  return known.keys;
}

/** Whether a text can be a key at all. */
export const isKey = (text: string): boolean => text.length <= LONGEST && TOKEN.test(text);

const encoder = new TextEncoder();

/** A longer text is cut, and is no key. */
function padded(text: string): Uint8Array {
  const buffer = new Uint8Array(LONGEST);
  encoder.encodeInto(text, buffer);
  return buffer;
}
