// The whole service: what is answered where, and by which operation. Routes are tried from the top;
// the first that answers wins, so the line that checks the key protects every line below it.

import type { IRequestStrict } from "itty-router";
import { Router } from "itty-router/Router";
import { authenticate } from "./authentication";
import { deprecated } from "./deprecation";
import { renderError } from "./errors";
import { createPet, getPet, listPets } from "./pets/operations";
import { preflight, withCommonHeaders } from "./responses";
import { exactPath, unrouted } from "./routing";

const router = Router<IRequestStrict, [Env]>({ catch: renderError, finally: [withCommonHeaders] });

router
  .options("*", preflight)
  .all("/v1/*", authenticate, exactPath)
  .get("/v1/pets", listPets)
  .post("/v1/pets", createPet)
  .get("/v1/pets/:petId", deprecated(getPet))
  .all("*", unrouted(router.routes));

/** HEAD is GET without the body (RFC 9110, section 9.3.2). */
async function fetch(request: Request, env: Env): Promise<Response> {
  if (request.method !== "HEAD") return router.fetch(request, env);
  return new Response(null, await router.fetch(new Request(request, { method: "GET" }), env));
}

export default { fetch } satisfies ExportedHandler<Env>;
