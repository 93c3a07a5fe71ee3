// The wording of validation errors. Each schema says what its value must be; what is said here holds for all of them.

import type * as z from "zod/mini";

/** The error of a schema or of a check: "must be …", or "is required and must be …" if the value is missing. */
export const must = (be: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? `is required and must be ${be}` : `must be ${be}`),
});

/** Every problem that a schema found, each after the name of its property: "name must be …". */
export function problemsOf({ issues }: z.core.$ZodError): string[] {
  // A set, because one value may fail several checks that have the same wording.
  return [...new Set(issues.map(({ path, message }) => [...path, message].join(" ")))];
}
