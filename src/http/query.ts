// The query of a request. An unknown or repeated parameter is refused: a misspelt filter must not answer with the wrong
// things. A parameter that is refused is named as it was sent.

import * as z from "zod/mini";

/** Every parameter with the list of its values; an unknown one under its name as sent, percent-encoded. */
export type Query = Record<string, string[]>;

/** Parses a query, without its question mark; `known` are the names that it may have. */
export function parseQuery(search: string, known: object): Query {
  const query: Query = Object.create(null);
  // URLSearchParams drops one question mark at the front, which would be part of a name; and it parses the same pieces.
  const sent = search.split("&").filter((piece) => piece !== "");
  for (const [index, [name, value]] of [...new URLSearchParams(`?${search}`)].entries()) {
    const key = Object.hasOwn(known, name) ? name : asSent(sent[index]);
    query[key] ??= [];
    query[key].push(value);
  }
  return query;
}

/** In ASCII on one line, whatever was sent. */
const asSent = (piece = ""): string =>
  piece
    .replace(/=.*/s, "")
    .toWellFormed()
    .replace(/[^!-~]/gu, encodeURIComponent);

/** A schema of a query that has these parameters and no other. */
export function querySchema<Shape extends z.core.$ZodShape>(parameters: Shape): z.ZodMiniObject<Shape, z.core.$strict> {
  const use = `use ${Object.keys(parameters).join(", ")}`;
  return z.strictObject(parameters, {
    error: (fault) =>
      fault.code === "unrecognized_keys"
        ? `unknown query parameter ${fault.keys.map((name) => name || '""').join(", ")}: ${use}`
        : undefined,
  });
}

/** A schema of a parameter that may be given once, and whose value `value` validates. */
export function once<Schema extends z.ZodMiniType<unknown, string>>(value: Schema) {
  const values = z.array(z.string()).check(z.maxLength(1, "must be given only once"));
  const first = z.transform(([value]: string[]) => value);
  return z.pipe(z.pipe(values, first), value);
}
