// Requests as node:http sends them, because fetch refuses some methods and headers that a caller can well send. Every
// response under /v1 is held against the description.

import { type IncomingMessage, request } from "node:http";
import { expectDescribed, type Answer } from "../conformance.ts";

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  /** Sent in these pieces, chunked; one string with a Content-Length. */
  body?: string | string[];
  /** Whether the end of the body is sent before the answer is there. */
  ends?: boolean;
}

export function send(
  url: string,
  { method = "GET", headers = {}, body = [], ends = true }: Sent = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = typeof body === "string" ? { "Content-Length": String(Buffer.byteLength(body)) } : {};
    const outgoing = request(url, { method, headers: { ...length, ...headers } }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (data) => {
        text += data;
      });
      incoming.on("error", reject);
      incoming.on("end", () => {
        if (!ends) outgoing.destroy();
        const seen = { status: incoming.statusCode ?? 0, headers: headersOf(incoming), text };
        const { pathname } = new URL(url);
        try {
          if (pathname.startsWith("/v1") && seen.status !== 501) expectDescribed(method, pathname, seen);
          resolve(seen);
        } catch (problem) {
          reject(problem);
        }
      });
    });
    outgoing.on("error", reject);
    for (const piece of [body].flat()) outgoing.write(piece);
    if (ends) outgoing.end();
  });
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(String(rawHeaders[i]), String(rawHeaders[i + 1]));
  return headers;
}
