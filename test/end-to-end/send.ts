// Sends requests with node:http, because fetch rejects some methods and headers that callers can send. Every response
// under /v1 is checked against the description. A deployed service has a rate limit: a 429 is waited for.

import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { setTimeout } from "node:timers/promises";
import { type Answer, expectDescribed } from "../conformance.ts";

const AGENT = "animal-store-tests"; // Cloudflare may reject requests without one.

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

const MAX_TRIES = 5;

export async function send(url: string, sent: Sent = {}): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await sendOnce(url, sent);
    if (answer.status !== 429 || tries === MAX_TRIES) return answer;
    await setTimeout(Number(answer.headers.get("Retry-After")) * 1000);
  }
}

function sendOnce(url: string, { method = "GET", headers = {}, body = "" }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = { "Content-Length": String(Buffer.byteLength(body)) };
    const { request } = url.startsWith("https:") ? https : http;
    const outgoing = request(url, { method, headers: { "User-Agent": AGENT, ...length, ...headers } }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (data) => (text += data));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const answer = { status: incoming.statusCode ?? 0, headers: headersOf(incoming), text };
        const { pathname } = new URL(url);
        try {
          if (pathname.startsWith("/v1")) expectDescribed(method, pathname, answer);
          resolve(answer);
        } catch (problem) {
          reject(problem);
        }
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(String(rawHeaders[i]), String(rawHeaders[i + 1]));
  return headers;
}
