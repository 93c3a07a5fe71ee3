// The entry point: a request goes through the route table, and whatever is thrown there becomes an error response.

import { renderError } from "./http/errors.ts";
import { KEY_NAME_HEADER } from "./http/responses.ts";
import { INVALID_HOST, toContext } from "./http/routing.ts";
import { router } from "./router.ts";

async function fetch(request: Request, env: Env): Promise<Response> {
  const response = await respond(request, env);
  // HEAD is GET without the body (RFC 9110, section 9.3.2).
  return request.method === "HEAD" ? new Response(null, response) : response;
}

async function respond(request: Request, env: Env): Promise<Response> {
  const context = toContext(request);
  if (!context) return renderError(INVALID_HOST, { request });
  const response = await router.fetch(context, env).catch((thrown: unknown) => renderError(thrown, context));
  if (context.apiKey) response.headers.set(KEY_NAME_HEADER, context.apiKey.name);
  return response;
}

export default { fetch } satisfies ExportedHandler<Env>;
