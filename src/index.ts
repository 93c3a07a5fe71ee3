// The whole service: which operation handles which request. Routes are tried from the top, and the first that responds wins.
// Under /v1, only OPTIONS is answered before the key is checked. Outside /v1 nothing is protected.

import { Router } from "itty-router/Router";
import { authenticate } from "./http/authentication.ts";
import { renderError } from "./http/errors.ts";
import { VERSION_HEADER, withHeaders } from "./http/responses.ts";
import { type ApiRequest, preflight, rejectTrailingSlash, toApiRequest, unrouted } from "./http/routing.ts";
import { deprecated } from "./pets/deprecation.ts";
import { createPet, getPet, listPets } from "./pets/operations.ts";

// The functions that take `router.routes` read it when a request arrives, so it has every route by then.
const router = Router<ApiRequest, [Env]>();

router
  .options("*", preflight(router.routes))
  .all("/v1/*", authenticate, rejectTrailingSlash)
  .get("/v1/pets", listPets)
  .post("/v1/pets", createPet)
  .get("/v1/pets/:petId", deprecated(getPet))
  .all("*", unrouted(router.routes));

async function fetch(request: Request, env: Env): Promise<Response> {
  const response = await respond(request, env);
  // An operator's own configuration may lack the binding.
  if (env.VERSION) withHeaders(response, { [VERSION_HEADER]: env.VERSION.id });
  // HEAD is GET without the body (RFC 9110, section 9.3.2).
  return request.method === "HEAD" ? new Response(null, response) : response;
}

async function respond(request: Request, env: Env): Promise<Response> {
  try {
    return await router.fetch(toApiRequest(request), env);
  } catch (thrown) {
    return renderError(thrown, request);
  }
}

export default { fetch } satisfies ExportedHandler<Env>;
