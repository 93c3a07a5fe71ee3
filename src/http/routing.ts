// What the route table leaves open. The router ignores slashes at the end of a path and tells no wrong method from a
// wrong path; a URL with one slash more is another resource (RFC 3986, section 6.2.3), and 405 is not 404.

import type { RouteEntry } from "itty-router";
import { ApiError } from "./errors.ts";
import { ALLOWED_HEADERS, noContent } from "./responses.ts";

/** What is routed: not the request itself, on which the router would write what it finds, at a cost. */
export interface ApiRequest {
  /** GET for HEAD too. */
  method: string;
  /** Without the query: the router would parse it, and lose how often a parameter is given. */
  url: string;
  /** The query, without its question mark. */
  search: string;
  request: Request;
  params: Record<string, string>;
}

export type Handler = (request: ApiRequest, env: Env) => Promise<Response>;

/** Throws 400 where the Host header is no host, so that the URL is none (RFC 9112, section 3.2). */
export function toApiRequest(request: Request): Omit<ApiRequest, "params"> {
  const [address = "", search = ""] = request.url.split(/\?(.*)/s);
  const url = URL.parse(address);
  if (!url) throw new ApiError("bad_request", "The Host header must be a host, with or without a port.");
  const method = request.method === "HEAD" ? "GET" : request.method;
  // Not as it was sent: `/v1/pets/.` is `/v1/pets/` (RFC 3986, section 5.2.4), and a link to the next page must be a URL.
  return { method, url: url.origin + url.pathname, search, request };
}

export function refuseTrailingSlash({ url }: ApiRequest): void {
  if (url.endsWith("/")) throw notFound();
}

/** Answers what no route has answered: 405 where another method is routed (RFC 9110, section 15.5.6), else 404. */
export function unrouted(routes: RouteEntry[]): (request: ApiRequest) => never {
  return ({ method, url }) => {
    const { pathname } = new URL(url);
    const methods = methodsOf(routes.filter(([, pattern]) => pattern.test(pathname)));
    if (methods.length === 0) throw notFound();
    const allow = allowedOf(methods);
    throw new ApiError("method_not_allowed", `${method} is not allowed here; allowed are ${allow}.`, { Allow: allow });
  };
}

/** Answers every preflight alike, on a path that exists or not: it carries no key, so it must not tell which do. */
export function preflight(routes: RouteEntry[]): () => Response {
  return () =>
    noContent({
      "Access-Control-Allow-Methods": allowedOf(methodsOf(routes)),
      "Access-Control-Allow-Headers": ALLOWED_HEADERS.join(", "),
      "Access-Control-Max-Age": "86400",
    });
}

/** Those of operations: every path has OPTIONS, and ALL is no method. */
const methodsOf = (routes: RouteEntry[]): string[] =>
  routes.map(([method]) => method).filter((method) => !["ALL", "OPTIONS"].includes(method));

/** The methods that are allowed where `methods` are those of operations, as a header lists them: each once, in order. */
export function allowedOf(methods: string[]): string {
  return [...new Set(["OPTIONS", ...methods, ...(methods.includes("GET") ? ["HEAD"] : [])])].sort().join(", ");
}

const notFound = () => new ApiError("not_found", "There is nothing at this path.");
