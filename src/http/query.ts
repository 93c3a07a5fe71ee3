// Reads the query of a request. An unknown or repeated parameter is rejected: a misspelled filter must not return the wrong
// things.

import * as z from "zod/mini";

/** Every parameter with its values. An unknown parameter has the name that was sent, still percent-encoded. */
export type Query = Record<string, string[]>;

// More than these always include one that is unknown or repeated. Reading them all would only cost CPU time.
const MAX_READ = 100;
const MAX_NAMED = 5;

/** Parses a query without its question mark; `known` has a member for each parameter that it may have. */
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

/** A schema of a query with these parameters and no others. */
export function querySchema<Shape extends z.core.$ZodShape>(parameters: Shape): z.ZodMiniObject<Shape, z.core.$strict> {
  const use = `use ${Object.keys(parameters).join(", ")}`;
  return z.strictObject(parameters, {
    error: (problem) =>
      problem.code === "unrecognized_keys" ? `unknown query parameter ${listed(problem.keys)}: ${use}` : undefined,
  });
}

function listed(names: string[]): string {
  const named = names.slice(0, MAX_NAMED).map((name) => name || '""');
  return named.join(", ") + (names.length > MAX_NAMED ? " and others" : "");
}

/** A schema of a parameter that may be given once and whose value has the schema `value`. */
export function once<Schema extends z.ZodMiniType<unknown, string>>(value: Schema) {
  const values = z.array(z.string()).check(z.maxLength(1, "must be given only once"));
  const first = z.transform(([value]: string[]) => value);
  return z.pipe(z.pipe(values, first), value);
}
