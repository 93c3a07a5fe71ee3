// getPet's way out: announced by headers until its last day (RFC 9745, RFC 8594), gone from that instant on. The clock
// decides, so the promise is kept without a deployment.

import { ApiError, renderError } from "./errors.ts";

const DEPRECATED = new Date("2026-11-20");
const SUNSET = new Date("2030-12-05");

/** The day of the removal, in words. */
export const REMOVAL = SUNSET.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });

export const DEPRECATION_HEADERS = {
  Deprecation: `@${DEPRECATED.getTime() / 1000}`,
  Sunset: SUNSET.toUTCString(),
  Link: '</v1/pets>; rel="successor-version", </>; rel="deprecation"; type="text/html"',
};

type Operation<R extends Request> = (request: R, env: Env) => Promise<Response>;

/** Marks every answer of `operation` as deprecated, its refusals too, and answers 410 once it is removed. */
export function deprecated<R extends Request>(operation: Operation<R>): Operation<R> {
  return async (request, env) => {
    const response = await (Date.now() < SUNSET.getTime() ? operation(request, env) : removed()).catch(renderError);
    for (const [name, value] of Object.entries(DEPRECATION_HEADERS)) response.headers.set(name, value);
    return response;
  };
}

async function removed(): Promise<never> {
  throw new ApiError("gone", `getPet was removed on ${REMOVAL}: use GET /v1/pets, with the status filter, instead.`);
}
