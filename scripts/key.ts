// What a service says about one API key: `npm run key -- <base URL>`. Procedures rely on the answer, so it has the
// address and the beginning of the key's hash: the service does not have a mistyped key, or one of a different
// environment, either. What answers is not trusted.

import { createHash } from "node:crypto";
import { CHALLENGE, callerOf, isSecretName } from "../src/http/authentication.ts";
import { CLOSED } from "../src/http/maintenance.ts";
import { KEY_NAME_HEADER } from "../src/http/responses.ts";
import { printable, readArguments, readKey } from "./command-line.ts";
import { parseBase } from "./environment.ts";

const TIMEOUT = 30_000; // milliseconds
const MAX_LENGTH = 1_000_000; // of a response, in bytes
const EXCERPT = 200; // characters

/** Asks the service with one request, which reads. `line`: the answer in words, without the key. */
export async function askAboutKey(base: string, key: string): Promise<{ state: State; line: string }> {
  const digits = createHash("sha256").update(key).digest("hex").slice(0, 8);
  const { state, text } = await request(base, key).catch((failure: Error) => {
    const { message } = failure.cause instanceof Error ? failure.cause : failure;
    return { state: "other" as const, text: `The service does not answer: ${message}` };
  });
  const hidden = text.replaceAll(key, "<key>").replaceAll(encodeURIComponent(key), "<key>");
  const line = printable(hidden.replaceAll(/\s+/g, " ").slice(0, EXCERPT));
  return { state, line: `${line} (${base}, key ${digits}…)` };
}

type State = "open" | "closed" | "unknown" | "other";

async function request(base: string, key: string): Promise<{ state: State; text: string }> {
  const headers = { Authorization: `Bearer ${key}` };
  const signal = AbortSignal.timeout(TIMEOUT);
  const response = await fetch(`${base}/pets?limit=1`, { headers, redirect: "manual", signal });
  const { status } = response;
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.length > MAX_LENGTH) throw new Error("The response is larger than 1 MB.");
  }
  const secret = response.headers.get(KEY_NAME_HEADER) ?? "";
  const whose = isSecretName(secret) ? `secret ${secret}, caller ${callerOf(secret)}` : "";
  if (status === 200 && whose) return { state: "open", text: `The service is open to this key: ${whose}` };
  if (status === 503 && whose && text.includes(CLOSED)) {
    return { state: "closed", text: `The service is closed for maintenance: ${whose}` };
  }
  if (status === 401 && response.headers.get("WWW-Authenticate")?.startsWith(CHALLENGE)) {
    return { state: "unknown", text: "The service does not have this key" };
  }
  return { state: "other", text: `Unexpected response: status ${status}, ${whose || "no secret"}, ${text}` };
}

if (import.meta.main) {
  const { base, key } = await readArguments(
    "npm run key -- <base URL that ends in /v1>",
    async ([base = "", ...more]) => {
      if (more.length > 0) throw new Error("Name one base URL.");
      const parsed = parseBase("The base URL", base);
      const key = await readKey();
      if (!key) throw new Error("Enter an API key on a terminal, or set the environment variable API_KEY.");
      return { base: parsed, key };
    },
  );
  const { state, line } = await askAboutKey(base, key);
  console.log(line);
  process.exitCode = state === "open" ? 0 : 1;
}
