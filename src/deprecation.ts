// getPet's way out: announced by headers until its last day (RFC 9745, RFC 8594), gone from that instant on. The clock
// decides, so the promise is kept without a deployment.

import { ApiError, renderError } from "./errors";

const DEPRECATED = Date.UTC(2026, 10, 20);
const SUNSET = Date.UTC(2030, 11, 5);

const HEADERS = {
  Deprecation: `@${DEPRECATED / 1000}`,
  Sunset: new Date(SUNSET).toUTCString(),
  Link: '</v1/pets>; rel="successor-version", </>; rel="deprecation"; type="text/html"',
};

type Operation<R extends Request> = (request: R, env: Env) => Promise<Response>;

/** Marks every answer of `operation` as deprecated, its refusals too, and answers 410 once it is removed. */
export function deprecated<R extends Request>(operation: Operation<R>): Operation<R> {
  return async (request, env) => {
    const response = await (Date.now() < SUNSET ? operation(request, env) : removed()).catch(renderError);
    for (const [name, value] of Object.entries(HEADERS)) response.headers.set(name, value);
    return response;
  };
}

async function removed(): Promise<never> {
  throw new ApiError(
    "gone",
    "getPet was removed on 5 December 2030: use GET /v1/pets, with the status filter, instead.",
  );
}
