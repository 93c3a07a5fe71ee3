// The interface's operations, by its own names: each parses, stores and responds.

import * as z from "zod/mini";
import { jsonTextOf, readJsonText } from "../http/body.ts";
import { idOf } from "../d1/columns.ts";
import { bookmarkOf, openSession } from "../d1/database.ts";
import { ApiError } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey, storeOnce } from "../http/idempotency.ts";
import { parseInt64 } from "../values/int64.ts";
import { toPage } from "../http/paging.ts";
import { parseQuery } from "../http/query.ts";
import { json } from "../http/responses.ts";
import type { ApiRequest } from "../http/routing.ts";
import { validate } from "../http/validation.ts";
import { NewPet, PetQuery } from "./pet.ts";
import { insertPet, selectPet, selectPets } from "./store.ts";

const ListRequest = z.object({ query: PetQuery });
const CreateRequest = z.object({ idempotencyKey: z.optional(IdempotencyKey), body: jsonTextOf(NewPet) });

export async function listPets({ request, url, search }: ApiRequest, env: Env): Promise<Response> {
  const { query } = validate(ListRequest, { query: parseQuery(search, PetQuery.shape) });
  const session = openSession(env.DB, request);
  const { page, link } = toPage(url, query, await selectPets(session, query));
  return json(page, 200, { ...bookmarkOf(session), ...link });
}

export async function createPet({ request }: ApiRequest, env: Env): Promise<Response> {
  const { idempotencyKey, body } = validate(CreateRequest, {
    idempotencyKey: request.headers.get(IDEMPOTENCY_HEADER) ?? undefined,
    body: await readJsonText(request),
  });
  const session = openSession(env.DB, request);
  const pet = await storeOnce("animal", idempotencyKey, session, () => insertPet(session, body, idempotencyKey));
  return json(pet, 201, { ...bookmarkOf(session), Location: `/v1/pets/${idOf(pet)}` });
}

export async function getPet({ request, params }: ApiRequest, env: Env): Promise<Response> {
  const session = openSession(env.DB, request);
  const id = parseInt64(params["petId"]);
  const pet = id === undefined ? undefined : await selectPet(session, id);
  if (!pet) throw new ApiError("not_found", "There is no animal with this id.", bookmarkOf(session));
  return json(pet, 200, bookmarkOf(session));
}
