// The interface's int64. It is a bigint everywhere, because a JavaScript number is exact only to 2^53.

import * as z from "zod/mini";
import { mustBeError } from "./wording.ts";

export const INT64 = { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n };

const AN_INT64 = `an integer between ${INT64.minimum} and ${INT64.maximum}`;
const INT64_ERROR = mustBeError(AN_INT64);
const QUOTED_ERROR = mustBeError(`a JSON number without quotes: ${AN_INT64}`);
const FORM_ERROR = mustBeError("an integer in decimal digits, without a plus sign, leading zeros or -0");

export const CANONICAL_INTEGER = /^(0|-?[1-9]\d*)$/;

export const Int64 = z.int64({
  error: (issue) => (typeof issue.input === "string" ? QUOTED_ERROR : INT64_ERROR).error(issue),
});

/** An int64 in its canonical decimal form, as in a URL. */
export const Int64Text = z.pipe(
  z.pipe(
    z.string().check(z.regex(CANONICAL_INTEGER, FORM_ERROR)),
    z.transform((digits: string) => BigInt(digits)),
  ),
  Int64,
);

/** The int64 in a path segment, which may be percent-encoded; undefined if the segment is not an int64. */
export function parseInt64(segment = ""): bigint | undefined {
  try {
    return Int64Text.parse(decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}
