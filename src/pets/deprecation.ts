// The deprecation of getPet: headers announce the day of its removal (RFC 9745, RFC 8594), and from that day on it returns 410.
// The clock decides, so the removal does not need a deployment.

import { ApiError, renderError } from "../http/errors.ts";
import { withHeaders } from "../http/responses.ts";
import type { Handler } from "../http/routing.ts";

/** The day of the removal, which starts at midnight UTC. */
export const REMOVAL = "5 December 2030";
export const REMOVED = `getPet was removed on ${REMOVAL}: use GET /v1/pets with the status filter instead.`;

const DEPRECATED = new Date("2026-11-20");
const SUNSET = new Date(`${REMOVAL} UTC`);

export const DEPRECATION_HEADERS = {
  Deprecation: `@${DEPRECATED.getTime() / 1000}`,
  Sunset: SUNSET.toUTCString(),
  Link: '</v1/pets>; rel="successor-version", </>; rel="deprecation"; type="text/html"',
};

/** Marks every response of `operation` as deprecated, errors included, and answers 410 once it is removed. */
export function deprecated(operation: Handler): Handler {
  return async (request, env) => {
    const answer = Date.now() < SUNSET.getTime() ? operation(request, env) : removed();
    // Rendered here and not in src/index.ts, so that errors have the headers too.
    const response = await answer.catch((thrown: unknown) => renderError(thrown, request.request));
    return withHeaders(response, DEPRECATION_HEADERS);
  };
}

async function removed(): Promise<never> {
  throw new ApiError("gone", REMOVED);
}
