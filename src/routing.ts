// What the route table leaves open. The router ignores slashes at the end of a path and tells no wrong method from a
// wrong path; a URL with one slash more is another resource (RFC 3986, section 6.2.3), and 405 is not 404.

import type { RouteEntry } from "itty-router";
import { ApiError } from "./errors.ts";

/** What is routed: not the request itself, on which the router would write what it finds, at a cost. */
export interface Call {
  /** GET for HEAD too. */
  method: string;
  /** Without the query: the router would parse it, and lose how often a parameter is given. */
  url: string;
  /** The query, without its question mark. */
  search: string | undefined;
  request: Request;
  params: Record<string, string>;
}

export function exactPath({ url }: Call): void {
  if (url.endsWith("/")) throw notFound();
}

// Every path has OPTIONS, and ALL is no method.
const METHOD = /^(?!ALL$|OPTIONS$)/;

/** Answers what no route has answered: 405 where another method is routed (RFC 9110, section 15.5.6), else 404. */
export function unrouted(routes: RouteEntry[]): (call: Call) => never {
  return ({ method, url }) => {
    const { pathname } = new URL(url);
    const methods = routes
      .filter(([name, pattern]) => METHOD.test(name) && pattern.test(pathname))
      .map(([name]) => name);
    if (methods.length === 0) throw notFound();
    const allow = [...methods.flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name])), "OPTIONS"].join(", ");
    throw new ApiError("method_not_allowed", `${method} is not allowed here; allowed are ${allow}.`, { Allow: allow });
  };
}

const notFound = () => new ApiError("not_found", "There is nothing at this path.");
