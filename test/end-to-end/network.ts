// A network between the service and its callers, which fails as a test wants. It ends with this process.

import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { ALLOWED_HEADERS } from "../../src/http/responses.ts";
import { startServer } from "../server.ts";
import { send } from "./send.ts";
import { ORIGIN } from "./service.ts";

/** The header cf-ray of every response, which reports of problems need. */
export const RAY = "9e7ef1dc58252cea-AMS";

/** What can be sent instead of the service's response, whose status and body it gets. */
const FAILURES: Record<string, (response: ServerResponse, status: number, body: string) => void> = {
  // Whoever follows it gets what looks like a success.
  redirect: (response) => response.writeHead(302, { Location: response.req.url }).end(),
  html: (response, status) => response.writeHead(status).end("<h1>Welcome</h1>"),
  shortened: (response, status, body) => response.writeHead(status).end(body.slice(0, -1)),
  "shortened error": (response) => response.writeHead(400).end('{"code":"invalid'),
  "cut off": (response, status, body) =>
    response.writeHead(status, { "Content-Length": body.length }).write(body.slice(0, 9), () => response.destroy()),
  silent: () => {},
  429: (response) => response.writeHead(429, { "Retry-After": "1" }).end("error code: 1015"),
  503: (response) => response.writeHead(503, { "Retry-After": "2" }).end("unavailable"),
};

/** The requests through one proxy. */
interface Run {
  baseUrl: string;
  /** How the first of them fail, if they do: a name of FAILURES, or "wrong key". */
  failures: string[];
  requests: number;
  /** In the service's responses to creates. */
  ids: number[];
}

const runs: Run[] = [];
/** All responses of the service, as the guide would show them. */
export const received: string[] = [];

export function openProxy(...failures: string[]): Run {
  const run = { baseUrl: `${network.origin}/${runs.length}/v1`, failures, requests: 0, ids: [] };
  runs.push(run);
  return run;
}

const network = await startServer((request, response) => {
  // After this, nobody tries again, and a failure of a test says why.
  pass(request, response).catch((failure) => response.writeHead(418).end(String(failure)));
}, "localhost");

network.server.unref();

async function pass(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  const [, number, path] = /^\/(\d+)(.*)/.exec(String(request.url)) ?? [];
  const run = runs[Number(number)] ?? expect.fail();
  const failure = run.failures[run.requests++] ?? "";
  response.setHeader("cf-ray", RAY);
  const sent = ALLOWED_HEADERS.map((name) => [name, request.headers[name.toLowerCase()]]).filter(([, value]) => value);
  const headers = { ...Object.fromEntries(sent), ...(failure === "wrong key" && { Authorization: "Bearer wrong" }) };
  const sentBody = await text(request);
  const options = { method: String(request.method), headers, ...(sentBody && { body: sentBody }) };
  const { status, headers: others, text: body } = await send(ORIGIN + path, options);
  const shown = ["Location", "Link"].filter((name) => others.has(name)).map((name) => `${name}: ${others.get(name)}`);
  received.push([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...shown, "", body].join("\n"));
  if (options.method === "POST") run.ids.push(JSON.parse(body).id);
  for (const name of ["Content-Length", "Transfer-Encoding"]) others.delete(name);
  const respond = FAILURES[failure];
  if (respond) return respond(response, status, body);
  const link = others.get("Link")?.replace(ORIGIN, `${network.origin}/${number}`);
  return response.writeHead(status, { ...Object.fromEntries(others), ...(link && { link }) }).end(body);
}
