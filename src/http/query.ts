// Reads the query of a request, for a schema that rejects unknown and repeated parameters: a misspelled filter must not
// return the wrong items.

import * as z from "zod/mini";

// This many parameters always include an unknown or repeated one. Reading all that fit into a URL would cost about half
// of the CPU time that the free plan allows (`npm run bench`).
const MAX_READ = 100;

/**
 * Parses a query without its question mark. A repeated parameter becomes an empty list, which no schema accepts. Names
 * are in ASCII, on one line.
 */
export function parseQuery(search: string): Record<string, string | []> {
  const query: Record<string, string | []> = Object.create(null);
  if (search === "") return query;
  let read = 0;
  // The & keeps a question mark at the start of a name, which URLSearchParams would remove.
  for (const [name, value] of new URLSearchParams(`&${search}`)) {
    if (read++ === MAX_READ) break;
    const key = name.replace(/[^!-~]/gu, encodeURIComponent);
    query[key] = key in query ? [] : value;
  }
  return query;
}

/** A schema for a parameter that may be given only once, with a value that matches `value`. */
export function singleParameter<Schema extends z.ZodMiniType<unknown, string>>(value: Schema) {
  return z.pipe(z.string("must be given only once"), value);
}
