// Pages of a collection in ascending order of id: by keyset, never by offset, so that each page reads as few rows as the
// first. The link to the next page is a header (RFC 8288), and the body stays an array.

import * as z from "zod/mini";
import { idOf, type StoredJson } from "../d1/columns.ts";
import { Int64Text } from "../values/int64.ts";
import { once } from "./query.ts";
import { must } from "./validation.ts";

const LIMIT = { minimum: 1, maximum: 100, default: 20 };
const beInRange = must(`an integer from ${LIMIT.minimum} to ${LIMIT.maximum}`);

const Limit = z.pipe(
  z.pipe(z.string().check(z.regex(/^-?\d+$/, must("an integer in decimal digits"))), z.transform(Number)),
  z.int(beInRange).check(z.minimum(LIMIT.minimum, beInRange), z.maximum(LIMIT.maximum, beInRange)),
);

/** The parameters of a query for a page. */
export const limit = z._default(once(Limit), LIMIT.default);
export const after = z.optional(once(Int64Text));

export interface PageQuery {
  limit: number;
  after?: bigint | undefined;
}

/** The id that a page begins after, as a parameter of its statement; less than every int64 for the first page. */
export const startOf = ({ after }: PageQuery): string => (after === undefined ? "-1e19" : String(after));

/**
 * The page that `query` asks of `url`, as JSON, out of its rows, one more of which was selected than may be shown: that
 * one tells whether there is a next page, to which there is a Link then.
 */
export function toPage(url: string, query: PageQuery, rows: StoredJson[]): { page: string; link: { Link?: string } } {
  const shown = rows.slice(0, query.limit);
  const last = rows.length > shown.length ? shown.at(-1) : undefined;
  return { page: `[${shown.join(",")}]`, link: last ? { Link: linkToNext(url, query, last) } : {} };
}

function linkToNext(url: string, query: PageQuery, last: StoredJson): string {
  const parameters = Object.entries({ ...query, after: idOf(last) }).filter(([, value]) => value !== undefined);
  return `<${url}?${parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}>; rel="next"`;
}
