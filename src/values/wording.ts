// The wording of validation errors: what all schemas share. Each schema adds what its value must be.

import type * as z from "zod/mini";

/** The error of a schema or of a check: "must be …", or "is required and must be …" if the value is missing. */
export const mustBeError = (be: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? `is required and must be ${be}` : `must be ${be}`),
});

const MAX_NAMED = 5;
const MAX_LENGTH = 100; // characters of a name

/**
 * The error of a strict object: "unknown <what> a, b (allowed: c, d)". Names the first few, because a caller can send
 * thousands.
 */
export const unknownNamesError = (what: string, known: object) => ({
  error: ({ code, keys = [] }: { code: string; keys?: string[] }) => {
    if (code !== "unrecognized_keys") return undefined;
    const named = keys.slice(0, MAX_NAMED).map(quoted);
    const others = keys.length > MAX_NAMED ? " and others" : "";
    return `unknown ${what} ${named.join(", ")}${others} (allowed: ${Object.keys(known).join(", ")})`;
  },
});

/** A name as sent, or as JSON if it is empty or has any characters that are not visible ASCII. */
function quoted(name: string): string {
  const shown = name.length > MAX_LENGTH ? `${name.slice(0, MAX_LENGTH)}...` : name;
  return /^[!-~]+$/.test(shown) ? shown : JSON.stringify(shown);
}

/** Every problem that a schema found, each after the name of its property: "name must be …". */
export function problemsOf({ issues }: z.core.$ZodError): string[] {
  // A set, because one value may fail several checks that have the same wording.
  return [...new Set(issues.map(({ path, message }) => [...path, message].join(" ")))];
}
