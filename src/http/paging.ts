// Pages of a list in ascending order of id. A page starts after an id, not at an offset, so every page reads as few
// rows as the first. The link to the next page is a header (RFC 8288), and the body stays an array.

import * as z from "zod/mini";
import { CANONICAL_INTEGER, Int64Text } from "../values/int64.ts";
import { mustBeError } from "../values/wording.ts";
import { singleParameter } from "./query.ts";

const SIZE = { smallest: 1, largest: 100, default: 20 };
const IN_RANGE = `an integer from ${SIZE.smallest} to ${SIZE.largest}`;
const RANGE_ERROR = mustBeError(IN_RANGE);

const PageSize = z.pipe(
  z.pipe(
    z
      .string()
      .check(z.regex(CANONICAL_INTEGER, mustBeError(`${IN_RANGE} in decimal digits, without a sign or leading zeros`))),
    z.transform(Number),
  ),
  z.int(RANGE_ERROR).check(z.minimum(SIZE.smallest, RANGE_ERROR), z.maximum(SIZE.largest, RANGE_ERROR)),
);

/** The query parameters of a page. */
export const limitParameter = z._default(singleParameter(PageSize), SIZE.default);
export const afterParameter = z.optional(singleParameter(Int64Text));

type Parameters = { limit: number } & Record<string, unknown>;

/**
 * The JSON of a page, and its Link header if there is a next page, which repeats the parameters. `rows` has the JSON of
 * each row, in which `idIn` finds the id; a row beyond the limit means that there is a next page.
 */
export function toPage(url: string, parameters: Parameters, rows: string[], idIn: (row: string) => string) {
  const shown = rows.slice(0, parameters.limit);
  const isLast = rows.length === shown.length;
  const link = isLast ? {} : { Link: linkToNext(url, { ...parameters, after: idIn(shown.at(-1) ?? "") }) };
  return { page: `[${shown.join(",")}]`, link };
}

function linkToNext(url: string, parameters: Parameters): string {
  const present = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = present.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
  return `<${url}?${query}>; rel="next"`;
}
