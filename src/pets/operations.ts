// The interface's operations, by its own names: each parses, stores and responds.

import type { IRequestStrict } from "itty-router";
import * as z from "zod/mini";
import { readJson } from "../body.ts";
import { BOOKMARK_HEADER, Bookmark, bookmarkOf, openSession, retried } from "../database.ts";
import { ApiError } from "../errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../idempotency.ts";
import { json } from "../responses.ts";
import { validate } from "../validation.ts";
import { Int64Text, NewPet, PetQuery } from "./pet.ts";
import { insertPet, selectPet, selectPets } from "./store.ts";

const ListRequest = z.object({ bookmark: z.optional(Bookmark), query: PetQuery });
const CreateRequest = z.object({
  bookmark: z.optional(Bookmark),
  idempotencyKey: z.optional(IdempotencyKey),
  body: NewPet,
});
const GetRequest = z.object({ bookmark: z.optional(Bookmark) });

export async function listPets(request: Request, env: Env): Promise<Response> {
  const url = new URL(request.url);
  const { bookmark, query } = validate(ListRequest, {
    bookmark: header(request, BOOKMARK_HEADER),
    query: queryOf(url),
  });
  const session = openSession(env.DB, bookmark);
  // One more than asked for tells whether there is a next page.
  const pets = await selectPets(session, { ...query, limit: query.limit + 1 });
  const page = pets.slice(0, query.limit);
  const last = pets.length > page.length ? page.at(-1) : undefined;
  const link = last && { Link: nextPage(url, last.id) };
  return json(`[${page.map((pet) => pet.json).join(",")}]`, { headers: { ...bookmarkOf(session), ...link } });
}

export async function createPet(request: Request, env: Env): Promise<Response> {
  const { bookmark, idempotencyKey, body } = validate(CreateRequest, {
    bookmark: header(request, BOOKMARK_HEADER),
    idempotencyKey: header(request, IDEMPOTENCY_HEADER),
    body: await readJson(request),
  });
  const session = openSession(env.DB, bookmark);
  const insert = () => insertPet(session, body, idempotencyKey);
  const pet = await (idempotencyKey === undefined ? insert() : retried(insert));
  if (!pet.asSent) {
    throw new ApiError(
      "unprocessable_content",
      "This Idempotency-Key has already added another animal.",
      bookmarkOf(session),
    );
  }
  return json(pet.json, { status: 201, headers: { ...bookmarkOf(session), Location: `/v1/pets/${pet.id}` } });
}

export async function getPet(request: IRequestStrict, env: Env): Promise<Response> {
  const { bookmark } = validate(GetRequest, { bookmark: header(request, BOOKMARK_HEADER) });
  const session = openSession(env.DB, bookmark);
  const id = parseId(request.params["petId"] ?? "");
  const pet = id === undefined ? undefined : await selectPet(session, id);
  if (!pet) throw new ApiError("not_found", "There is no animal with this id.", bookmarkOf(session));
  return json(pet.json, { headers: bookmarkOf(session) });
}

const header = (request: Request, name: string) => request.headers.get(name) ?? undefined;

/** Every parameter with the list of its values, because one may be repeated. */
function queryOf({ searchParams }: URL): Record<string, string[]> {
  return Object.fromEntries(new Set(searchParams.keys()).values().map((name) => [name, searchParams.getAll(name)]));
}

/** The link to the page after `id` (RFC 8288), with the other parameters of `url` as they are. */
function nextPage(url: URL, id: string): string {
  const next = new URL(url);
  next.searchParams.set("after", id);
  return `<${next}>; rel="next"`;
}

/** The id in a path segment, which may be percent-encoded; undefined where it can be nobody's. */
function parseId(segment: string): bigint | undefined {
  try {
    return Int64Text.parse(decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}
