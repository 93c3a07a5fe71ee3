// The interface's operations, by its own names: each parses, stores and responds.

import type { IRequestStrict } from "itty-router";
import { readJson } from "../body.ts";
import { ApiError } from "../errors.ts";
import { json } from "../responses.ts";
import { validate } from "../validation.ts";
import { Int64Text, NewPet, PetQuery } from "./pet.ts";
import { insertPet, selectPet, selectPets } from "./store.ts";

export async function listPets(request: Request, env: Env): Promise<Response> {
  const url = new URL(request.url);
  const names = new Set(url.searchParams.keys());
  const parameters = Object.fromEntries(names.values().map((name) => [name, url.searchParams.getAll(name)]));
  const query = validate(PetQuery, parameters);
  // One more than asked for tells whether there is a next page.
  const pets = await selectPets(env.DB, { ...query, limit: query.limit + 1 });
  const page = pets.slice(0, query.limit);
  const last = pets.length > page.length ? page.at(-1) : undefined;
  return json(`[${page.map((pet) => pet.json).join(",")}]`, { headers: last ? { Link: nextPage(url, last.id) } : {} });
}

/** The link to the page after `id` (RFC 8288), with the other parameters of `url` as they are. */
function nextPage(url: URL, id: string): string {
  const next = new URL(url);
  next.searchParams.set("after", id);
  return `<${next}>; rel="next"`;
}

export async function createPet(request: Request, env: Env): Promise<Response> {
  const pet = await insertPet(env.DB, validate(NewPet, await readJson(request)));
  return json(pet.json, { status: 201, headers: { Location: `/v1/pets/${pet.id}` } });
}

export async function getPet({ params }: IRequestStrict, env: Env): Promise<Response> {
  const id = parseId(params["petId"] ?? "");
  const pet = id === undefined ? undefined : await selectPet(env.DB, id);
  if (!pet) throw new ApiError("not_found", "There is no animal with this id.");
  return json(pet.json);
}

/** The id in a path segment, which may be percent-encoded; undefined where it can be nobody's. */
function parseId(segment: string): bigint | undefined {
  try {
    return Int64Text.parse(decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}
