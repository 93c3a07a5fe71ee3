// The deprecation of getPet: headers announce the day of its removal (RFC 9745, RFC 8594), and from that day on it
// returns 410. The clock decides, so the removal does not need a deployment.

import { ApiError, renderError } from "../http/errors.ts";
import { withHeaders } from "../http/responses.ts";
import type { Handler } from "../http/routing.ts";

const DEPRECATED = new Date("2026-11-20");
/** The day of the removal, which starts at midnight UTC. */
export const SUNSET = new Date("2030-12-05");

export const REMOVED =
  `getPet was removed on ${SUNSET.toISOString().slice(0, 10)}. ` +
  "Use GET /v1/pets instead, with the query parameter id or status.";

export const DEPRECATION_HEADERS = {
  Deprecation: `@${DEPRECATED.getTime() / 1000}`,
  Sunset: SUNSET.toUTCString(),
  Link: '</v1/pets>; rel="successor-version", </#removal-of-getpet>; rel="deprecation"; type="text/html"',
};

/** Marks every response of `operation` as deprecated, errors included, and returns 410 once it is removed. */
export function deprecated(operation: Handler): Handler {
  return async (context, env) => {
    const isRemoved = Date.now() >= SUNSET.getTime();
    const result = isRemoved ? Promise.reject(new ApiError("operation_removed", REMOVED)) : operation(context, env);
    // Rendered here and not by the router, so that errors have the headers too.
    const response = await result.catch((thrown: unknown) => renderError(thrown, context));
    return withHeaders(response, DEPRECATION_HEADERS);
  };
}
