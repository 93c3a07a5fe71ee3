// Pages of a list in ascending order of id. A page starts after an id, not at an offset, so every page reads as few rows as
// the first. The link to the next page is a header (RFC 8288), and the body stays an array.

import * as z from "zod/mini";
import { idIn } from "../d1/columns.ts";
import { Int64Text } from "../values/int64.ts";
import { must } from "../values/wording.ts";
import { once } from "./query.ts";

const LIMIT = { minimum: 1, maximum: 100, default: 20 };
const beInRange = must(`an integer from ${LIMIT.minimum} to ${LIMIT.maximum}`);

const Limit = z.pipe(
  z.pipe(z.string().check(z.regex(/^-?\d+$/, must("an integer in decimal digits"))), z.transform(Number)),
  z.int(beInRange).check(z.minimum(LIMIT.minimum, beInRange), z.maximum(LIMIT.maximum, beInRange)),
);

/** The query parameters of a page. */
export const limit = z._default(once(Limit), LIMIT.default);
export const after = z.optional(once(Int64Text));

interface PageQuery {
  limit: number;
  after?: bigint | undefined;
}

/**
 * The JSON of a page, and its Link header if there is a next page. `rows` has the JSON of each row; a row beyond the limit means
 * that there is a next page.
 */
export function toPage(url: string, query: PageQuery, rows: string[]): { page: string; link: { Link?: string } } {
  const shown = rows.slice(0, query.limit);
  const last = rows.length > shown.length ? shown.at(-1) : undefined;
  return { page: `[${shown.join(",")}]`, link: last ? { Link: linkToNext(url, query, idIn(last)) } : {} };
}

function linkToNext(url: string, query: PageQuery, after: string): string {
  const parameters = Object.entries({ ...query, after }).filter(([, value]) => value !== undefined);
  return `<${url}?${parameters.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&")}>; rel="next"`;
}
