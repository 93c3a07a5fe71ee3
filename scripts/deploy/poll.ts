// Sends requests to a deployed service and ignores responses from other versions: for some seconds after a deployment, each of
// Cloudflare's machines may still serve the previous version, or none. What answers is not trusted.

import { setTimeout as wait } from "node:timers/promises";
import { CHALLENGE } from "../../src/http/authentication.ts";
import { VERSION_HEADER } from "../../src/http/responses.ts";

export interface Target {
  /** The base URL, which ends in /v1. */
  base: string;
  /** The version that must answer. When omitted, any version may. */
  version?: string;
  /** The name of the Worker whose `version` is requested by a header, even at 0% of the traffic. */
  override?: string;
}

export interface Limits {
  /** When to give up, on the clock of `Date.now()`. */
  until: number;
  /** Milliseconds between two requests. */
  interval: number;
  /** Once aborted, everything that waits throws its reason. */
  signal?: AbortSignal;
}

export type Answer = Awaited<ReturnType<typeof send>>;

/** The service, or the requested version of it, did not answer in time. */
export class NoAnswer extends Error {}

export const INTERVAL = 500; // milliseconds
const REQUEST_TIMEOUT = 10_000; // milliseconds
const IN_A_ROW = 5;
const MAX_BYTES = 1_000_000; // of an answer

/** Repeats a request until the version answers anything except 503, which is temporary. Throws NoAnswer. */
export function poll(target: Target, path: string, request: RequestInit, limits: Limits): Promise<Answer> {
  return untilAnswered(limits, async () => judge(target, await send(target, path, request, limits.signal)));
}

/**
 * Waits until the version rejects a request without a key as only this service does, several times in a row. Throws
 * NoAnswer, and an Error if the version answers anything else.
 */
export function waitUntilReady(target: Target, limits: Limits): Promise<void> {
  return untilAnswered(limits, async () => {
    for (let seen = 0; seen < IN_A_ROW; seen++) {
      if (seen > 0) await pause(limits);
      // Each new connection may reach a different machine.
      const request = { headers: { Connection: "close" } };
      const { status, headers } = judge(target, await send(target, "/pets", request, limits.signal));
      if (status !== 401 || headers.get("WWW-Authenticate") !== CHALLENGE) {
        throw new Error(`Version ${target.version} answers ${status} instead of 401 to a request without a key.`);
      }
    }
  });
}

async function untilAnswered<T>(limits: Limits, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (failure) {
      if (!(failure instanceof NoAnswer) || Date.now() + limits.interval > limits.until) throw failure;
      await pause(limits);
    }
  }
}

async function pause({ interval, signal }: Limits): Promise<void> {
  await wait(interval);
  signal?.throwIfAborted();
}

/** Throws NoAnswer if nothing answers, or with too much. */
async function send({ base, version, override }: Target, path: string, request: RequestInit, signal?: AbortSignal) {
  const url = `${base}${path}`;
  const headers = new Headers(request.headers);
  // https://developers.cloudflare.com/workers/versions-and-deployments/version-overrides/
  if (override) headers.set("Cloudflare-Workers-Version-Overrides", `${override}="${version}"`);
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT);
  const ended = signal ? AbortSignal.any([signal, timeout]) : timeout;
  try {
    const response = await fetch(url, { ...request, headers, redirect: "manual", signal: ended });
    const text = await readText(response);
    // For messages: shortened, and without the key that was sent.
    const [, key] = headers.get("Authorization")?.split(" ") ?? [];
    const excerpt = (key ? text.replaceAll(key, "<key>") : text).slice(0, 300);
    const { status } = response;
    return { url, request: `${request.method ?? "GET"} ${path}`, status, headers: response.headers, text, excerpt };
  } catch (failure) {
    signal?.throwIfAborted();
    const { message, cause } = failure as Error;
    throw new NoAnswer(`${url} does not answer: ${cause instanceof Error ? cause.message : message}.`);
  }
}

async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error("the response is larger than 1 MB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Returns the answer if it is final and comes from the version. Otherwise throws NoAnswer. */
function judge({ version, override }: Target, answer: Answer): Answer {
  const { url, status, headers, excerpt } = answer;
  const by = headers.get(VERSION_HEADER);
  if (version && by !== version) {
    const instead = by ? `version ${by}` : "something other than this service";
    const cause = by && override ? " The version override was ignored." : "";
    throw new NoAnswer(`${url} is answered by ${instead} (${status}) instead of version ${version}.${cause}`);
  }
  if (status === 503) throw new NoAnswer(`${url} answers 503: ${excerpt}`);
  return answer;
}
