// getPet's way out: announced by headers until its last day (RFC 9745, RFC 8594), gone from that instant on. The clock
// decides, so the promise is kept without a deployment.

import { ApiError, renderError } from "../http/errors.ts";
import { withHeaders } from "../http/responses.ts";
import type { Handler } from "../http/routing.ts";

/** The day of the removal, which begins at midnight UTC. */
export const REMOVAL = "5 December 2030";

const DEPRECATED = new Date("2026-11-20");
const SUNSET = new Date(`${REMOVAL} UTC`);

export const DEPRECATION_HEADERS = {
  Deprecation: `@${DEPRECATED.getTime() / 1000}`,
  Sunset: SUNSET.toUTCString(),
  Link: '</v1/pets>; rel="successor-version", </>; rel="deprecation"; type="text/html"',
};

/** Marks every answer of `operation` as deprecated, its refusals too, and answers 410 once it is removed. */
export function deprecated(operation: Handler): Handler {
  return async (request, env) => {
    const answer = Date.now() < SUNSET.getTime() ? operation(request, env) : removed();
    const response = await answer.catch((thrown: unknown) => renderError(thrown, request.request));
    return withHeaders(response, DEPRECATION_HEADERS);
  };
}

async function removed(): Promise<never> {
  throw new ApiError("gone", `getPet was removed on ${REMOVAL}: use GET /v1/pets, with the status filter, instead.`);
}
