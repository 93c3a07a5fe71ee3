// The operations of the interface, under its own names. Each parses, stores and responds.

import * as z from "zod/mini";
import { openSession } from "../d1/database.ts";
import { JsonBody, readBody } from "../http/body.ts";
import { bookmarkHeaderOf, bookmarkIn } from "../http/bookmark.ts";
import { ApiError, validated } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../http/idempotency.ts";
import { toPage } from "../http/paging.ts";
import { parseQuery } from "../http/query.ts";
import { json } from "../http/responses.ts";
import type { Context } from "../http/routing.ts";
import { parseInt64 } from "../values/int64.ts";
import { NewPet } from "./pet.ts";
import { PetQuery } from "./pet-query.ts";
import { idIn, insertPet, selectPets } from "./store.ts";

const OptionalKey = z.optional(IdempotencyKey);
export const NewPetBody = z.pipe(JsonBody, NewPet);

export const UNKNOWN_ID = "No animal has this id.";
export const KEY_USED =
  `This ${IDEMPOTENCY_HEADER} was already used for a different animal. ` +
  "To retry, send that animal again; to add this one, use a new key.";

export async function listPets({ request, url, search }: Context, env: Env): Promise<Response> {
  const [query] = validated(PetQuery.safeParse(parseQuery(search)));
  const session = openSession(env.DB, bookmarkIn(request));
  const { page, link } = toPage(url, query, await selectPets(session, query), idIn);
  return json(page, 200, { ...bookmarkHeaderOf(session), ...link });
}

export async function createPet({ request, apiKey }: Context, env: Env): Promise<Response> {
  const body = await readBody(request);
  const key = request.headers.get(IDEMPOTENCY_HEADER) ?? undefined;
  const [idempotencyKey, pet] = validated(OptionalKey.safeParse(key), NewPetBody.safeParse(body));
  const session = openSession(env.DB, bookmarkIn(request));
  const { id, json: stored, matches } = await insertPet(session, pet, { caller: apiKey.caller, idempotencyKey });
  if (!matches) throw new ApiError("idempotency_key_used", KEY_USED, bookmarkHeaderOf(session));
  return json(stored, 201, { ...bookmarkHeaderOf(session), Location: `/v1/pets/${id}` });
}

export async function getPet({ request, params }: Context, env: Env): Promise<Response> {
  const session = openSession(env.DB, bookmarkIn(request));
  const id = parseInt64(params["petId"]);
  const [pet] = id === undefined ? [] : await selectPets(session, { id, limit: 1 });
  if (!pet) throw new ApiError("id_not_found", UNKNOWN_ID, bookmarkHeaderOf(session));
  return json(pet, 200, bookmarkHeaderOf(session));
}
