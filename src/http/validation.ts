// Validating unknown input by a schema. The schemas word each fault for the caller ("must be …"); this adds where.

import type * as z from "zod/mini";
import { ApiError } from "./errors.ts";

/** Words the faults of a schema; one check with it, or several, for a value that must be as `be` says. */
export const must = (be: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? `is required and must be ${be}` : `must be ${be}`),
});

/**
 * The parts of a request as `schema` gives them, or a 400 that names every fault at once: in which property of the part.
 * Which part it is, the schemas of those that have no properties say themselves.
 */
export function validate<T>(schema: z.ZodMiniType<T>, parts: Record<string, unknown>): T {
  const { success, data, error } = schema.safeParse(parts);
  if (success) return data;
  // A set, because one value may break several checks that are worded as one.
  const faults = new Set(error.issues.map(({ path: [, ...where], message }) => [...where, message].join(" ")));
  throw new ApiError("bad_request", `${[...faults].join("; ")}.`);
}
