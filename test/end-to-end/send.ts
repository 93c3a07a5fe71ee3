// Sends requests with node:http, because fetch rejects some methods and headers that callers can send. Every response
// under /v1 is checked against the description.

import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { type Answer, expectDescribed } from "../conformance.ts";

const AGENT = "animal-store-tests"; // Cloudflare may reject requests without one.

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

export function send(url: string, { method = "GET", headers = {}, body = "" }: Sent = {}): Promise<Answer> {
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
