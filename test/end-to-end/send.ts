// Sends requests. Every response under /v1 is checked against the description. A deployed service has a rate limit: a
// 429 is waited for.

import { setTimeout } from "node:timers/promises";
import { type Answer, expectDescribed } from "../conformance.ts";

// Cloudflare may reject requests without a User-Agent.
const HEADERS = { "User-Agent": "animal-store-tests", "Accept-Encoding": "identity" };

const MAX_TRIES = 5;

type Sent = { method?: string; headers?: Record<string, string>; body?: string };

export async function send(url: string, { headers, ...sent }: Sent = {}): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const response = await fetch(url, { ...sent, headers: { ...HEADERS, ...headers }, redirect: "manual" });
    const answer = { status: response.status, headers: new Headers(response.headers), text: await response.text() };
    const { pathname } = new URL(url);
    if (pathname.startsWith("/v1")) expectDescribed(sent.method ?? "GET", pathname, answer);
    if (answer.status !== 429 || tries === MAX_TRIES) return answer;
    await setTimeout(Number(answer.headers.get("Retry-After")) * 1000);
  }
}
