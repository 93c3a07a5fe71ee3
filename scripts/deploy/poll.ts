// Sends requests to a deployed service until the right version answers: for some seconds after a deployment, each of Cloudflare's
// machines may still serve the previous version, or none. What answers is not trusted.

import { setTimeout as wait } from "node:timers/promises";
import { VERSION_HEADER } from "../../src/http/responses.ts";

/**
 * A base URL, which ends in /v1. `version`: the one that must answer; when omitted, any may. `override`: the name of the Worker
 * whose `version` is requested by a header, even at 0% of the traffic.
 */
export type Target = { base: string; version?: string; override?: string };

/** The milliseconds between two tries of a request, and until it is not tried again. An aborted `signal` ends all waiting. */
export type Limits = { interval: number; patience: number; signal?: AbortSignal };

export type Reply = Awaited<ReturnType<typeof send>>;

export const INTERVAL = 500; // milliseconds
const REQUEST_TIMEOUT = 10_000; // milliseconds
const MAX_LENGTH = 1_000_000; // of an answer
const OTHER = "\nThis is a different environment's address, or Cloudflare does not know the new version yet.";
const REJECTED = '\nCloudflare may have rejected the request: see "Domain and rate limits" in docs/OPERATIONS.md.';

/**
 * Repeats a request until the version answers anything except 503, which is temporary, this many times in a row. Throws if it does
 * not in time.
 */
export async function poll(target: Target, path: string, request: RequestInit, limits: Limits, times = 1) {
  const { interval, patience, signal } = limits;
  const until = Date.now() + patience;
  for (let inARow = 0; ; await wait(interval)) {
    try {
      const reply = await send(target, path, request, signal);
      if (++inARow === times) return reply;
    } catch (failure) {
      signal?.throwIfAborted();
      if (Date.now() + interval > until) throw failure;
      inARow = 0;
    }
  }
}

/** Throws if nothing answers, or with too much, or with 503, or a different version. */
async function send({ base, version, override }: Target, path: string, request: RequestInit, signal?: AbortSignal) {
  const url = `${base}${path}`;
  const headers = new Headers(request.headers);
  // https://developers.cloudflare.com/workers/versions-and-deployments/version-overrides/
  if (override) headers.set("Cloudflare-Workers-Version-Overrides", `${override}="${version}"`);
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT);
  const init = { ...request, headers, signal: signal ? AbortSignal.any([signal, timeout]) : timeout };
  const [response, text] = await fetchText(url, init).catch(({ message, cause }: Error) => {
    throw new Error(`${url} does not answer: ${cause instanceof Error ? cause.message : message}`);
  });
  // For messages: shortened, on one line, and without the key that was sent.
  const [, key] = headers.get("Authorization")?.split(" ") ?? [];
  const hidden = (part: string) => (key ? part.replaceAll(key, "<key>") : part);
  const excerpt = hidden(text).replaceAll(/\s+/g, " ").slice(0, 300);
  const { status } = response;
  const [answering] = /^[\w-]{1,36}$/.exec(hidden(response.headers.get(VERSION_HEADER) ?? "")) ?? [];
  if (version && answering !== version) {
    const hint = answering && override ? OTHER : status === 403 ? REJECTED : "";
    throw new Error(
      `${url} answers ${status} as version ${answering ?? "none"} instead of ${version}: ${excerpt}${hint}`,
    );
  }
  if (status === 503) throw new Error(`${url} answers 503: ${excerpt}`);
  const sent = `${request.method ?? "GET"} ${hidden(path).slice(0, 100)}`;
  return { request: sent, status, headers: response.headers, text, excerpt };
}

async function fetchText(url: string, init: RequestInit): Promise<[Response, string]> {
  const response = await fetch(url, { ...init, redirect: "manual" });
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.length > MAX_LENGTH) throw new Error("the response is larger than 1 MB");
  }
  return [response, text];
}
