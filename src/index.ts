// The whole service: what is answered where, and by which operation. Routes are tried from the top, and the first that
// answers wins: below /v1, only OPTIONS is answered before the key is checked. Outside of /v1 nothing is protected.

import type { RouteEntry } from "itty-router";
import { Router } from "itty-router/Router";
import { authenticate } from "./http/authentication.ts";
import { deprecated } from "./pets/deprecation.ts";
import { renderError } from "./http/errors.ts";
import { createPet, getPet, listPets } from "./pets/operations.ts";
import { VERSION_HEADER, withHeaders } from "./http/responses.ts";
import { type ApiRequest, preflight, refuseTrailingSlash, toApiRequest, unrouted } from "./http/routing.ts";

const router = Router<ApiRequest, [Env]>();

router
  .options("*", preflight(router.routes))
  .all("/v1/*", authenticate, refuseTrailingSlash)
  .get("/v1/pets", listPets)
  .post("/v1/pets", createPet)
  .get("/v1/pets/:petId", deprecated(getPet))
  .all("*", unrouted(router.routes));

async function fetch(request: Request, env: Env): Promise<Response> {
  const response = await route(request, env).catch((thrown: unknown) => renderError(thrown, request));
  // A configuration of somebody else's may lack the binding.
  if (env.VERSION) withHeaders(response, { [VERSION_HEADER]: env.VERSION.id });
  // HEAD is GET without the body (RFC 9110, section 9.3.2).
  return request.method === "HEAD" ? new Response(null, response) : response;
}

async function route(request: Request, env: Env): Promise<Response> {
  return router.fetch(toApiRequest(request), env);
}

// The routes are there for the test that compares them with the description.
export default { fetch, routes: router.routes } satisfies ExportedHandler<Env> & { routes: RouteEntry[] };
