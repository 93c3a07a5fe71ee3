// Asks the service at an address, and believes nothing that another version answered: for some seconds after a
// deployment an address is served by the version before, or by none, on each of Cloudflare's machines for itself.

import { setTimeout as wait } from "node:timers/promises";
import { CHALLENGE } from "../../src/http/authentication.ts";
import { VERSION_HEADER } from "../../src/http/responses.ts";

export interface Target {
  /** The base URL, which ends in /v1. */
  base: string;
  /** The version whose answers are believed; where it is left out, those of every one. */
  version?: string;
  /** The Worker that is told to have the version answer, though it may have no share of the callers. */
  override?: string;
}

export interface VersionTarget extends Target {
  version: string;
}

export interface Limits {
  /** When to give up, as `Date.now()` tells the time. */
  until: number;
  /** When it is aborted, all that waits throws its reason. */
  signal?: AbortSignal;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** The service, or the version of it that was asked for, did not answer in time. */
export class Unanswered extends Error {
  /** The version that answered in place of the one that was asked for, if one did. */
  readonly instead: string | undefined;

  constructor(problem: string, instead?: string) {
    super(problem);
    this.instead = instead;
  }
}

const REQUEST = 10_000; // milliseconds that one request may take
const PAUSE = 500; // milliseconds between two
const IN_A_ROW = 5;

/** Asks until the version answers: anything but 503, which says itself that it passes. Throws Unanswered. */
export async function ask(target: Target, path: string, request: RequestInit, limits: Limits): Promise<Answer> {
  for (;;) {
    try {
      return await askOnce(target, path, request, limits.signal);
    } catch (failure) {
      if (!(failure instanceof Unanswered) || Date.now() + PAUSE > limits.until) throw failure;
      await pause(limits);
    }
  }
}

/**
 * Waits until the version answers as only this service does, with its own 401, several times in a row. Throws Unanswered,
 * and an Error where the version itself answers anything else.
 */
export async function untilReady(target: VersionTarget, limits: Limits): Promise<void> {
  for (let seen = 0; seen < IN_A_ROW; seen++) {
    if (seen > 0) await pause(limits);
    try {
      // A new connection each time may lead to another machine.
      const { status, headers } = await askOnce(target, "/pets", { headers: { Connection: "close" } }, limits.signal);
      if (status !== 401 || headers.get("WWW-Authenticate") !== CHALLENGE) {
        throw new Error(`Version ${target.version} answers a request without a key with ${status} in place of 401.`);
      }
    } catch (failure) {
      if (!(failure instanceof Unanswered) || Date.now() + PAUSE > limits.until) throw failure;
      seen = -1;
      await pause(limits);
    }
  }
}

async function pause({ signal }: Limits): Promise<void> {
  await wait(PAUSE, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
}

async function askOnce(target: Target, path: string, request: RequestInit, signal?: AbortSignal): Promise<Answer> {
  const { base, version, override } = target;
  const url = `${base}${path}`;
  const headers = new Headers(request.headers);
  // https://developers.cloudflare.com/workers/versions-and-deployments/version-overrides/
  if (override) headers.set("Cloudflare-Workers-Version-Overrides", `${override}="${version}"`);
  const timeout = AbortSignal.timeout(REQUEST);
  let answer: Answer;
  try {
    const response = await fetch(url, {
      ...request,
      headers,
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    answer = { status: response.status, headers: response.headers, text: await response.text() };
  } catch (failure) {
    signal?.throwIfAborted();
    const { message, cause } = failure as Error;
    const why = timeout.aborted
      ? `nothing within ${REQUEST / 1000} s`
      : cause instanceof Error
        ? cause.message
        : message;
    throw new Unanswered(`${url} does not answer${version ? ` as version ${version}` : ""}: ${why}.`);
  }
  const by = answer.headers.get(VERSION_HEADER) ?? undefined;
  if (version && by !== version) {
    const instead = by ? `version ${by}` : "no version of the service";
    throw new Unanswered(`${url} is answered ${answer.status} by ${instead} in place of version ${version}.`, by);
  }
  if (answer.status === 503) throw new Unanswered(`${url} is answered 503: ${answer.text}`);
  return answer;
}
