// Validation of the parts of a request, all of them at once, so that a caller learns every problem from one response.

import type * as z from "zod/mini";
import { problemsOf } from "../values/wording.ts";
import { ApiError } from "./errors.ts";

type Results<Parts> = { [Part in keyof Parts]: z.core.util.SafeParseResult<Parts[Part]> };

/** What the schemas made of their parts. Throws a 400 that names every problem in every part. */
export function validated<Parts extends unknown[]>(...results: Results<Parts>): Parts {
  const problems = results.flatMap(({ error }) => (error ? problemsOf(error) : []));
  if (problems.length > 0) throw new ApiError("bad_request", `${problems.join("; ")}.`);
  return results.map(({ data }) => data) as Parts;
}
