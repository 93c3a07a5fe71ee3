// The whole service: what is answered where, and by which operation. Routes are tried from the top;
// the first that answers wins, so the line that checks the key protects every line below it.

import { Router } from "itty-router/Router";
import { authenticate } from "./authentication.ts";
import { deprecated } from "./deprecation.ts";
import { renderError } from "./errors.ts";
import { createPet, getPet, listPets } from "./pets/operations.ts";
import { preflight, VERSION_HEADER, withHeaders } from "./responses.ts";
import { type Call, exactPath, unrouted } from "./routing.ts";

const router = Router<Call, [Env]>({ catch: renderError });

router
  .options("*", preflight)
  .all("/v1/*", authenticate, exactPath)
  .get("/v1/pets", listPets)
  .post("/v1/pets", createPet)
  .get("/v1/pets/:petId", deprecated(getPet))
  .all("*", unrouted(router.routes));

/** HEAD is GET without the body (RFC 9110, section 9.3.2). */
async function fetch(request: Request, env: Env): Promise<Response> {
  const [url = "", search] = request.url.split(/\?(.*)/s);
  const isHead = request.method === "HEAD";
  const response = await router.fetch({ method: isHead ? "GET" : request.method, url, search, request }, env);
  withHeaders(response, { [VERSION_HEADER]: env.VERSION.id });
  return isHead ? new Response(null, response) : response;
}

export default { fetch } satisfies ExportedHandler<Env>;
