// Sends requests to a deployed service until the right version answers: for some seconds after a deployment, each of
// Cloudflare's machines may still serve the previous version, or none. What answers is not trusted.

import { setTimeout as wait } from "node:timers/promises";
import { isSecretName } from "../../src/http/authentication.ts";
import { CLOSED } from "../../src/http/maintenance.ts";
import { CALLER_HEADER, VERSION_HEADER } from "../../src/http/responses.ts";

export type Target = {
  /** The base URL, which ends in /v1. */
  base: string;
  /** The version that must answer. When omitted, any may. */
  version?: string;
  /** An API key. It is hidden in all messages. */
  key?: string;
  /** Called with the name of the secret that holds the key, for each response that contains it. */
  onSecret?: (name: string) => void;
};

/** The milliseconds between two tries of a request, and until it is not tried again. */
export type Limits = { interval: number; patience: number };

export type Reply = Awaited<ReturnType<typeof send>>;

export const INTERVAL = 500; // milliseconds
const REQUEST_TIMEOUT = 10_000; // milliseconds
const MAX_LENGTH = 1_000_000; // of an answer
const OTHER = "\nThis is a different environment's address, or Cloudflare does not know the new version yet.";
const REJECTED = '\nCloudflare may have rejected the request: see "Domain" in docs/OPERATIONS.md.';

/**
 * Repeats a request until the version answers anything except what is temporary (429 and 503), this many times in a
 * row. Throws if it does not in time.
 */
export async function poll(target: Target, path: string, request: RequestInit, limits: Limits, times = 1) {
  const { interval, patience } = limits;
  const until = Date.now() + patience;
  for (let inARow = 0; ; await wait(interval)) {
    try {
      const reply = await send(target, path, request);
      if (++inARow === times) return reply;
    } catch (failure) {
      if (Date.now() + interval > until) throw failure;
      inARow = 0;
    }
  }
}

/** Throws if nothing answers, or with too much, or with 429 or 503, or a different version. */
async function send({ base, version, key, onSecret }: Target, path: string, request: RequestInit) {
  /** For messages, what a server can have sent: shortened, on one line, and without the key. */
  const excerpt = (text: string, length = 300) => {
    const hidden = key ? text.replaceAll(key, "<key>").replaceAll(encodeURIComponent(key), "<key>") : text;
    return hidden.replaceAll(/\s+/g, " ").slice(0, length);
  };
  const url = excerpt(base + path);
  const [response, text] = await fetchText(base + path, request).catch(({ message, cause }: Error) => {
    throw new Error(`${url} does not answer: ${excerpt(cause instanceof Error ? cause.message : message)}`);
  });
  const { status } = response;
  // A success can have animals of the store, and a workflow keeps what is printed.
  const body = excerpt(text, status < 300 ? 20 : 300);
  const secret = response.headers.get(CALLER_HEADER) ?? "";
  const hasKey = new Headers(request.headers).get("Authorization") === `Bearer ${key}`;
  if (hasKey && isSecretName(secret)) onSecret?.(excerpt(secret));
  const [answering] = /^[\w-]{1,36}$/.exec(excerpt(response.headers.get(VERSION_HEADER) ?? "")) ?? [];
  if (version && answering !== version) {
    const hint = answering ? OTHER : status === 403 ? REJECTED : "";
    const instead = `as version ${answering ?? "none"} instead of ${version}`;
    throw new Error(`${url} answers ${status} ${instead}: ${body}${hint}`);
  }
  const isClosed = status === 503 && text.includes(CLOSED);
  if (status === 429 || (status === 503 && !isClosed)) throw new Error(`${url} answers ${status}: ${body}`);
  const sent = `${request.method ?? "GET"} ${excerpt(path, 100)}`;
  return { request: sent, response, status, text, body, isClosed, excerpt };
}

async function fetchText(url: string, request: RequestInit): Promise<[Response, string]> {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT);
  const response = await fetch(url, { ...request, signal, redirect: "manual" });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.length > MAX_LENGTH) throw new Error("the response is larger than 1 MB");
  }
  return [response, text];
}
