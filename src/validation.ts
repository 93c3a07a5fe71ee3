// Holding unknown input against a schema. The schemas word each fault for the caller ("must be …"); this adds where.

import type * as z from "zod/mini";
import { ApiError } from "./errors.ts";

/** The input as `schema` gives it, or a 400 that names every fault at once. */
export function validate<T>(schema: z.ZodMiniType<T>, input: unknown): T {
  const { success, data, error } = schema.safeParse(input);
  if (success) return data;
  // A set, because one value may break several checks that are worded as one.
  const faults = new Set(error.issues.map(({ path, message }) => [...path, message].join(" ")));
  throw new ApiError("bad_request", `${[...faults].join("; ")}.`);
}
