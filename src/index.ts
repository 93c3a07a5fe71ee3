// The entry point: a request goes through the route table, and whatever is thrown there becomes an error response.

import { renderError } from "./http/errors.ts";
import { VERSION_HEADER } from "./http/responses.ts";
import { toContext } from "./http/routing.ts";
import { router } from "./router.ts";

async function fetch(request: Request, env: Env): Promise<Response> {
  const response = await respond(request, env);
  // A new environment in wrangler.toml may lack the binding, which is no reason to fail.
  if (env.VERSION) response.headers.set(VERSION_HEADER, env.VERSION.id);
  // HEAD is GET without the body (RFC 9110, section 9.3.2).
  return request.method === "HEAD" ? new Response(null, response) : response;
}

async function respond(request: Request, env: Env): Promise<Response> {
  try {
    return await router.fetch(toContext(request), env);
  } catch (thrown) {
    return renderError(thrown, request);
  }
}

export default { fetch } satisfies ExportedHandler<Env>;
