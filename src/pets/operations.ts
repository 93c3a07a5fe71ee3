// The operations of the interface, under its own names. Each parses, stores and responds.

import * as z from "zod/mini";
import { idIn } from "../d1/columns.ts";
import { bookmarkOf, openSession } from "../d1/database.ts";
import { jsonText, readJsonText } from "../http/body.ts";
import { ApiError, validated } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey, usedFor } from "../http/idempotency.ts";
import { toPage } from "../http/paging.ts";
import { parseQuery } from "../http/query.ts";
import { json } from "../http/responses.ts";
import type { ApiRequest } from "../http/routing.ts";
import { parseInt64 } from "../values/int64.ts";
import { NewPet, PetQuery } from "./pet.ts";
import { insertPet, selectPet, selectPets } from "./store.ts";

const OptionalKey = z.optional(IdempotencyKey);
const NewPetJson = jsonText(NewPet);

export const UNKNOWN_ID = "There is no animal with this id.";
const KEY_USED = usedFor("animal");

export async function listPets({ request, url, search }: ApiRequest, env: Env): Promise<Response> {
  const [query] = validated(PetQuery.safeParse(parseQuery(search, PetQuery.shape)));
  const session = openSession(env.DB, request);
  const { page, link } = toPage(url, query, await selectPets(session, query));
  return json(page, 200, { ...bookmarkOf(session), ...link });
}

export async function createPet({ request }: ApiRequest, env: Env): Promise<Response> {
  const text = await readJsonText(request);
  const key = request.headers.get(IDEMPOTENCY_HEADER) ?? undefined;
  const [idempotencyKey, pet] = validated(OptionalKey.safeParse(key), NewPetJson.safeParse(text));
  const session = openSession(env.DB, request);
  const { stored, matches } = await insertPet(session, pet, idempotencyKey);
  if (!matches) throw new ApiError("unprocessable_content", KEY_USED, bookmarkOf(session));
  return json(stored, 201, { ...bookmarkOf(session), Location: `/v1/pets/${idIn(stored)}` });
}

export async function getPet({ request, params }: ApiRequest, env: Env): Promise<Response> {
  const session = openSession(env.DB, request);
  const id = parseInt64(params["petId"]);
  const pet = id === undefined ? undefined : await selectPet(session, id);
  if (!pet) throw new ApiError("not_found", UNKNOWN_ID, bookmarkOf(session));
  return json(pet, 200, bookmarkOf(session));
}
