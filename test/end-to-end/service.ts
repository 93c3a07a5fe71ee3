// The service that the tests call: the global setup starts a local one (local-setup.ts) or checks a deployed one
// (deployed-setup.ts). Every test creates the animals it needs, and does not rely on the absence of others, so the
// files can run in parallel, and on a store that earlier runs have filled.

import { inject } from "vitest";
import { SUNSET } from "../../src/pets/deprecation.ts";
import { AnimalStore } from "../../src/site/client.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Its origin is without a slash at the end. */
    service: { origin: string; key: string; isDeployed: boolean; isClosed: boolean };
  }
}

export const { origin: ORIGIN, key: API_KEY, isDeployed: IS_DEPLOYED, isClosed: IS_CLOSED } = inject("service");

/**
 * The headers of most requests. This bookmark reads from the primary: a replica may lag behind what a test has created.
 */
export const KEY = { Authorization: `Bearer ${API_KEY}`, "x-d1-bookmark": "latest" };

const store = new AnimalStore({ baseUrl: `${ORIGIN}/v1`, apiKey: API_KEY });

export async function addAnimal(name = "Rex"): Promise<bigint> {
  return (await store.createPet({ name, categoryId: 7n })).id;
}

export const IS_REMOVED = Date.now() >= SUNSET.getTime();

// Why tests are skipped: at the end of their titles.
export const LOCAL_ONLY = IS_DEPLOYED ? " (SKIPPED: only for a local service)" : "";
export const OPEN_ONLY = IS_CLOSED ? " (SKIPPED: the service is closed for maintenance)" : "";
