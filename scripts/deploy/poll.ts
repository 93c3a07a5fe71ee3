// Sends requests to a deployed service and ignores responses from other versions: for some seconds after a deployment, each of
// Cloudflare's machines may still serve the previous version, or none.

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
  /** Once aborted, everything that waits throws its reason. */
  signal?: AbortSignal;
}

export type Answer = Awaited<ReturnType<typeof send>>;

/** The service, or the requested version of it, did not answer in time. The cause is the version that did, if any. */
export class NoAnswer extends Error {}

const REQUEST_TIMEOUT = 10_000; // milliseconds
const INTERVAL = Number(process.env["POLL_INTERVAL"] ?? 500); // milliseconds; the tests shorten it
const IN_A_ROW = 5;

/** Repeats a request until the version answers anything except 503, which is temporary. Throws NoAnswer. */
export function poll(target: Target, path: string, request: RequestInit, limits: Limits): Promise<Answer> {
  return retry(limits, () => send(target, path, request, limits.signal));
}

/**
 * Waits until the version rejects a request without a key as only this service does, several times in a row. Throws
 * NoAnswer, and an Error if the version answers anything else.
 */
export function waitUntilReady(target: Target, limits: Limits): Promise<void> {
  return retry(limits, async () => {
    for (let seen = 0; seen < IN_A_ROW; seen++) {
      if (seen > 0) await pause(limits);
      // Each new connection may reach a different machine.
      const { status, headers } = await send(target, "/pets", { headers: { Connection: "close" } }, limits.signal);
      if (status !== 401 || headers.get("WWW-Authenticate") !== CHALLENGE) {
        throw new Error(`Version ${target.version} answers ${status} instead of 401 to a request without a key.`);
      }
    }
  });
}

async function retry<T>(limits: Limits, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (failure) {
      if (!(failure instanceof NoAnswer) || Date.now() + INTERVAL > limits.until) throw failure;
      await pause(limits);
    }
  }
}

async function pause({ signal }: Limits): Promise<void> {
  await wait(INTERVAL);
  signal?.throwIfAborted();
}

async function send({ base, version, override }: Target, path: string, request: RequestInit, signal?: AbortSignal) {
  const url = `${base}${path}`;
  const headers = new Headers(request.headers);
  // https://developers.cloudflare.com/workers/versions-and-deployments/version-overrides/
  if (override) headers.set("Cloudflare-Workers-Version-Overrides", `${override}="${version}"`);
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT);
  const answered = fetch(url, {
    ...request,
    headers,
    redirect: "manual",
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  });
  const [response, text] = await answered
    .then(async (response) => [response, await response.text()] as const)
    .catch(({ message, cause }: Error) => {
      signal?.throwIfAborted();
      throw new NoAnswer(`${url} does not answer: ${cause instanceof Error ? cause.message : message}.`);
    });
  const { status } = response;
  const by = response.headers.get(VERSION_HEADER) ?? undefined;
  if (version && by !== version) {
    const instead = by ? `version ${by}` : "something other than this service";
    throw new NoAnswer(`${url} is answered by ${instead} (${status}) instead of version ${version}.`, { cause: by });
  }
  // For messages: shortened, and without the key that was sent.
  const [, key] = headers.get("Authorization")?.split(" ") ?? [];
  const excerpt = (key ? text.replaceAll(key, "<key>") : text).slice(0, 300);
  if (status === 503) throw new NoAnswer(`${url} answers 503: ${excerpt}`);
  return { request: `${request.method ?? "GET"} ${path}`, status, headers: response.headers, text, excerpt };
}
