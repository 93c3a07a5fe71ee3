// The route table: which operation handles which request. Routes are tried from the top, and the first that responds
// wins. Under /v1, the key is checked first, except for OPTIONS. Outside /v1 nothing is protected. Whatever is thrown
// becomes an error response.

import { Router } from "itty-router/Router";
import { addKeyName, authenticate } from "./http/authentication.ts";
import { renderError } from "./http/errors.ts";
import { rejectWhileClosed } from "./http/maintenance.ts";
import { rejectPlainHttp } from "./http/plain-http.ts";
import { limitRate } from "./http/rate-limit.ts";
import { type IncomingRequest, preflight, rejectTrailingSlash, unrouted } from "./http/routing.ts";
import { traceCaller } from "./http/tracing.ts";
import { deprecated } from "./pets/deprecation.ts";
import { createPet, getPet, listPets } from "./pets/operations.ts";

// The functions that take `router.routes` read it when a request arrives, so it has every route by then.
export const router = Router<IncomingRequest, [Env]>({ catch: renderError, finally: [addKeyName] });

router
  .options("*", preflight(router.routes))
  .all("/v1/*", authenticate, traceCaller, rejectPlainHttp, rejectWhileClosed, limitRate, rejectTrailingSlash)
  .get("/v1/pets", listPets)
  .post("/v1/pets", createPet)
  .get("/v1/pets/:petId", deprecated(getPet))
  .all("*", unrouted(router.routes));
