// Reads the query of a request. An unknown or repeated parameter is rejected, because a misspelled filter must not return the
// wrong items.

import * as z from "zod/mini";
import { noOther } from "../values/wording.ts";

/** Every parameter with its values. An unknown parameter has the name that was sent, still percent-encoded. */
export type Query = Record<string, string[]>;

// This many parameters always include an unknown or repeated one, so reading more would only cost CPU time.
const MAX_READ = 100;

/** Parses a query without its question mark; `known` has a member for each allowed parameter. */
export function parseQuery(search: string, known: object): Query {
  const query: Query = Object.create(null);
  const sent = search.split("&").filter((parameter) => parameter !== "");
  for (const parameter of sent.slice(0, MAX_READ)) {
    // The & keeps a question mark at the start of a name, which URLSearchParams would remove.
    for (const [name, value] of new URLSearchParams(`&${parameter}`)) {
      const key = Object.hasOwn(known, name) ? name : asSent(parameter);
      query[key] ??= [];
      query[key].push(value);
    }
  }
  return query;
}

/** The name of a parameter, in ASCII and on one line, whatever was sent. */
const asSent = (parameter: string): string =>
  parameter
    .replace(/=.*/s, "")
    .toWellFormed()
    .replace(/[^!-~]/gu, encodeURIComponent);

/** A schema for a query with these parameters and no others. */
export function querySchema<Shape extends z.core.$ZodShape>(parameters: Shape): z.ZodMiniObject<Shape, z.core.$strict> {
  return z.strictObject(parameters, noOther("query parameter", parameters));
}

/** A schema for a parameter that may be given only once, with a value that matches `value`. */
export function once<Schema extends z.ZodMiniType<unknown, string>>(value: Schema) {
  const values = z.array(z.string()).check(z.maxLength(1, "must be given only once"));
  const first = z.transform(([value]: string[]) => value);
  return z.pipe(z.pipe(values, first), value);
}
