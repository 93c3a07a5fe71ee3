// What the router does not do. It ignores trailing slashes, and does not distinguish a wrong method from an unknown
// path. But a URL with a trailing slash is a different resource (RFC 3986, section 6.2.3), and 405 is not 404.

import type { RouteEntry } from "itty-router";
import type { ApiKey } from "./api-key.ts";
import { ApiError } from "./errors.ts";
import { ALLOWED_HEADERS, noContent } from "./responses.ts";

/** A request as it arrives: a plain object, because the router writes to it. */
export interface IncomingRequest {
  /** GET also for HEAD. */
  method: string;
  /** Without the query: the router would parse it, and lose some repeated parameters. */
  url: string;
  /** The query, without its question mark. */
  search: string;
  request: Request;
  params: Record<string, string>;
  /** Undefined until authenticate has found a valid key. */
  apiKey?: ApiKey | undefined;
}

/** What an operation gets: a request whose key is valid. */
export interface Context extends IncomingRequest {
  apiKey: ApiKey;
}

export type Handler = (context: Context, env: Env) => Promise<Response>;

/** A request whose Host header is not a valid host has no URL (RFC 9112, section 3.2). */
export const INVALID_HOST = new ApiError(
  "invalid_request",
  "The Host header must be a valid host, with or without a port.",
);

/** What the router gets of a request, or undefined if its Host header is not a valid host. */
export function toIncomingRequest(request: Request): Omit<IncomingRequest, "params"> | undefined {
  const [address = "", search = ""] = request.url.split(/\?(.*)/s);
  const url = URL.parse(cameByHttps(request) ? address.replace(/^http:/, "https:") : address);
  const method = request.method === "HEAD" ? "GET" : request.method;
  // Normalized: `/v1/pets/.` is `/v1/pets/` (RFC 3986, section 5.2.4), and the link to the next page must be a URL.
  return url ? { method, url: url.origin + url.pathname, search, request } : undefined;
}

/** A tunnel to a local service sends plain HTTP, and cf-visitor has the scheme that its caller used. */
const cameByHttps = ({ headers }: Request): boolean => /"scheme":\s*"https"/.test(headers.get("cf-visitor") ?? "");

export function rejectTrailingSlash({ url }: IncomingRequest): void {
  if (url.endsWith("/")) throw notFound("Paths do not end with a slash.");
}

/**
 * Rejects a request without a route: with 405 if the path has other methods (RFC 9110, section 15.5.6), else with 404.
 */
export function unrouted(routes: RouteEntry[]): (incoming: IncomingRequest) => never {
  return ({ method, url }) => {
    const { pathname } = new URL(url);
    const methods = methodsOf(routes.filter(([, pattern]) => pattern.test(pathname)));
    if (methods.length === 0) throw notFound(`Try ${startingPoints(routes)}, or see the guide at /.`);
    const allow = allowedMethods(methods);
    throw new ApiError("method_not_allowed", notAllowedMessage(method, allow), { Allow: allow });
  };
}

/** Responds to every preflight alike, whatever its path. */
export function preflight(routes: RouteEntry[]): () => Response {
  return () =>
    noContent({
      "Access-Control-Allow-Methods": allowedMethods(methodsOf(routes)),
      "Access-Control-Allow-Headers": ALLOWED_HEADERS.join(", "),
      "Access-Control-Max-Age": "86400",
    });
}

/** The methods of operations. Without OPTIONS, which every path has, and ALL, which is not a method. */
const methodsOf = (routes: RouteEntry[]): string[] =>
  routes.map(([method]) => method).filter((method) => !["ALL", "OPTIONS"].includes(method));

/** The value of Allow for a path whose operations have these methods. */
function allowedMethods(methods: string[]): string {
  return [...new Set(["OPTIONS", ...methods, ...(methods.includes("GET") ? ["HEAD"] : [])])].sort().join(", ");
}

export const notAllowedMessage = (method: string, allow: string): string =>
  `${method} is not allowed here; use ${allow}.`;

export const NOTHING_HERE = "There is nothing at this path.";

const notFound = (hint: string) => new ApiError("path_not_found", `${NOTHING_HERE} ${hint}`);

/** The paths without parameters, such as /v1/pets. */
const startingPoints = (routes: RouteEntry[]): string =>
  [...new Set(routes.map(([, , , path = "*"]) => path).filter((path) => !/[:*]/.test(path)))].join(", ");
