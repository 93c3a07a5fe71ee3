// Bearer keys (RFC 6750). A key is compared by its SHA-256 digest, in constant time and with every key that is valid,
// so that neither its length nor a shared prefix can be timed. Without a usable secret nobody is admitted.

import { ApiError } from "./errors.ts";
import type { Call } from "./routing.ts";

export const CHALLENGE = 'Bearer realm="animal-store"';
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/; // b64token, RFC 6750, section 2.1

/** Throws 401 unless the request carries one of the keys of `API_KEY`, and 500 while that secret holds none. */
export async function authenticate({ request }: Call, env: Env): Promise<void> {
  const valid = await digestsOf(env.API_KEY);
  const [, credentials] = /^Bearer +(.*)$/i.exec(request.headers.get("Authorization") ?? "") ?? [];
  if (!credentials) {
    throw new ApiError("unauthorized", "An API key is required: send it as Authorization: Bearer <API_KEY>.", {
      "WWW-Authenticate": CHALLENGE,
    });
  }
  const presented = await digest(credentials);
  // Not `some`: it would stop at the first match and so tell which key it was.
  const matches = valid.filter((key) => crypto.subtle.timingSafeEqual(key, presented));
  if (matches.length === 0) {
    throw new ApiError("unauthorized", "The API key is not valid.", {
      "WWW-Authenticate": `${CHALLENGE}, error="invalid_token"`,
    });
  }
}

// Made once for each secret that the isolate sees, which is one.
let known: { secret: string | undefined; digests: ArrayBuffer[] } | undefined;

async function digestsOf(secret: string | undefined): Promise<ArrayBuffer[]> {
  if (!known || known.secret !== secret) {
    const keys = (secret ?? "")
      .split(",")
      .map((key) => key.trim())
      .filter((key) => TOKEN.test(key));
    known = { secret, digests: await Promise.all(keys.map(digest)) };
  }
  if (known.digests.length === 0) throw new Error("The secret API_KEY is missing or holds no key: nobody is admitted.");
  return known.digests;
}

const encoder = new TextEncoder();

function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", encoder.encode(text));
}
