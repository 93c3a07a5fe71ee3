// The interface's operations, by its own names: each parses, stores and responds.

import * as z from "zod/mini";
import { readJson } from "../body.ts";
import { BOOKMARK_HEADER, Bookmark, bookmarkOf, openSession, retried } from "../database.ts";
import { ApiError } from "../errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../idempotency.ts";
import { json } from "../responses.ts";
import type { Call } from "../routing.ts";
import { validate } from "../validation.ts";
import { Int64Text, NewPet, PetQuery } from "./pet.ts";
import { idOf, insertPet, type StoredPet, selectPet, selectPets } from "./store.ts";

const ListRequest = z.object({ bookmark: z.optional(Bookmark), query: PetQuery });
const CreateRequest = z.object({
  bookmark: z.optional(Bookmark),
  idempotencyKey: z.optional(IdempotencyKey),
  body: NewPet,
});
const GetRequest = z.object({ bookmark: z.optional(Bookmark) });

const KEY_IS_TAKEN = "This Idempotency-Key has already added another animal.";

export async function listPets({ request, url, search }: Call, env: Env): Promise<Response> {
  const { bookmark, query } = validate(ListRequest, {
    bookmark: header(request, BOOKMARK_HEADER),
    query: listed(search),
  });
  const session = openSession(env.DB, bookmark);
  // One more than asked for tells whether there is a next page.
  const pets = await selectPets(session, { ...query, limit: query.limit + 1 });
  const page = pets.slice(0, query.limit);
  const last = pets.length > page.length ? page.at(-1) : undefined;
  const link = last && { Link: linkToNext(url, query, last) };
  return json(`[${page.join(",")}]`, 200, { ...bookmarkOf(session), ...link });
}

export async function createPet({ request }: Call, env: Env): Promise<Response> {
  const { bookmark, idempotencyKey, body } = validate(CreateRequest, {
    bookmark: header(request, BOOKMARK_HEADER),
    idempotencyKey: header(request, IDEMPOTENCY_HEADER),
    body: await readJson(request),
  });
  const session = openSession(env.DB, bookmark);
  const insert = () => insertPet(session, body, idempotencyKey);
  const { pet, asSent } = await (idempotencyKey === undefined ? insert() : retried(insert));
  if (!asSent) throw new ApiError("unprocessable_content", KEY_IS_TAKEN, bookmarkOf(session));
  return json(pet, 201, { ...bookmarkOf(session), Location: `/v1/pets/${idOf(pet)}` });
}

export async function getPet({ request, params }: Call, env: Env): Promise<Response> {
  const { bookmark } = validate(GetRequest, { bookmark: header(request, BOOKMARK_HEADER) });
  const session = openSession(env.DB, bookmark);
  const id = parseId(params["petId"] ?? "");
  const pet = id === undefined ? undefined : await selectPet(session, id);
  if (!pet) throw new ApiError("not_found", "There is no animal with this id.", bookmarkOf(session));
  return json(pet, 200, bookmarkOf(session));
}

const header = (request: Request, name: string) => request.headers.get(name) ?? undefined;

/** Every parameter with the list of its values, because one may be repeated. */
function listed(search: string | undefined): Record<string, string[]> {
  const parameters: Record<string, string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(search)) {
    parameters[name] ??= [];
    parameters[name].push(value);
  }
  return parameters;
}

/** The link to the page after `last` (RFC 8288). */
function linkToNext(url: string, { limit, status }: PetQuery, last: StoredPet): string {
  return `<${url}?limit=${limit}${status ? `&status=${status}` : ""}&after=${idOf(last)}>; rel="next"`;
}

/** The id in a path segment, which may be percent-encoded; undefined where it can be nobody's. */
function parseId(segment: string): bigint | undefined {
  try {
    return Int64Text.parse(decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}
