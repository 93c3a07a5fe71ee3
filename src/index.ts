// The entry point: the route table (router.ts) responds to every request that has a URL.

import { renderError } from "./http/errors.ts";
import { INVALID_HOST, toIncomingRequest } from "./http/routing.ts";
import { router } from "./router.ts";

async function fetch(request: Request, env: Env): Promise<Response> {
  const incoming = toIncomingRequest(request);
  const response = incoming ? await router.fetch(incoming, env) : renderError(INVALID_HOST, { request });
  // HEAD is GET without the body (RFC 9110, section 9.3.2).
  return request.method === "HEAD" ? new Response(null, response) : response;
}

export default { fetch } satisfies ExportedHandler<Env>;
