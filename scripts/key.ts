// What a service says about one API key: `npm run key -- <base URL>`. The answer has the address and the beginning of
// the key's hash, because an unknown key may also be mistyped, or that of a different environment. What answers is not
// trusted: nothing of a body is printed.

import { createHash } from "node:crypto";
import { CHALLENGE, callerOf } from "../src/http/authentication.ts";
import type { ErrorCode } from "../src/http/errors.ts";
import { KEY_NAME_HEADER } from "../src/http/responses.ts";
import { parseBase } from "./environment.ts";
import { readKey } from "./read-key.ts";

const TIMEOUT = 30_000; // milliseconds
const MAX_NAME = 100; // characters: to match thousands would take long

const CLOSED = `{"code":"${"closed" satisfies ErrorCode}"`;

const ANSWERS = {
  open: "The service is open to this key",
  closed: "The service is closed for maintenance",
  unknown: "The service does not have this key",
  unexpected: "Unexpected response",
};

/** Asks the service with one request, which reads. `line`: the answer in words. Throws if there is no response. */
export async function askAboutKey(base: string, key: string): Promise<{ state: keyof typeof ANSWERS; line: string }> {
  const headers = { Authorization: `Bearer ${key}` };
  const signal = AbortSignal.timeout(TIMEOUT);
  const response = await fetch(`${base}/pets?limit=1`, { headers, redirect: "manual", signal }).catch((failure) => {
    throw new Error(`${base} does not answer: ${failure.cause?.message ?? failure.message}`);
  });
  const { status } = response;
  const name = response.headers.get(KEY_NAME_HEADER) ?? "";
  const caller = name.length > MAX_NAME ? undefined : callerOf(name);
  const isRefused = status === 401 && response.headers.get("WWW-Authenticate")?.startsWith(CHALLENGE);
  const isClosed = caller && status === 503 && (await startOf(response)).startsWith(CLOSED);
  const state = caller && status === 200 ? "open" : isClosed ? "closed" : isRefused ? "unknown" : "unexpected";
  const whose = caller ? `secret ${name}, caller ${caller}` : "no secret";
  const digits = createHash("sha256").update(key).digest("hex").slice(0, 8);
  return { state, line: `${ANSWERS[state]}: status ${status}, ${whose} (${base}, SHA-256 ${digits}…)` };
}

/** The first bytes of a body, which may be large. */
async function startOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const { value } = (await reader?.read().catch(() => undefined)) ?? {};
  await reader?.cancel().catch(() => {});
  return new TextDecoder().decode(value);
}

if (import.meta.main) {
  try {
    const base = parseBase("npm run key -- <base URL>: the base URL", process.argv[2] ?? "");
    const { state, line } = await askAboutKey(base, await readKey("API key"));
    console.log(line);
    process.exitCode = state === "open" ? 0 : 1;
  } catch (failure) {
    console.error((failure as Error).message);
    process.exitCode = 1;
  }
}
