// Reads the query of a request. An unknown or repeated parameter is rejected, because a misspelled filter must not return the
// wrong items.

import * as z from "zod/mini";
import { noOther } from "../values/wording.ts";

/** The values of each parameter. A repeated parameter has a list of them, which `once` rejects. */
export type Query = Record<string, string | string[]>;

// This many parameters always include an unknown or repeated one, so reading more would only cost CPU time.
const MAX_READ = 100;

/** Parses a query without its question mark. The names are in ASCII and on one line, whatever was sent. */
export function parseQuery(search: string): Query {
  const query: Query = Object.create(null);
  let read = 0;
  // The & keeps a question mark at the start of a name, which URLSearchParams would remove.
  for (const [name, value] of new URLSearchParams(`&${search}`)) {
    if (read++ === MAX_READ) break;
    const key = name.replace(/[^!-~]/gu, encodeURIComponent);
    query[key] = key in query ? [query[key] ?? [], value].flat() : value;
  }
  return query;
}

/** A schema for a query with these parameters and no others. */
export function querySchema<Shape extends z.core.$ZodShape>(parameters: Shape): z.ZodMiniObject<Shape, z.core.$strict> {
  return z.strictObject(parameters, noOther("query parameter", parameters));
}

/** A schema for a parameter that may be given only once, with a value that matches `value`. */
export function once<Schema extends z.ZodMiniType<unknown, string>>(value: Schema) {
  return z.pipe(z.string("must be given only once"), value);
}
