// A client that a caller generates from the description: it compiles (npm run typecheck) and it works.

import createClient, { type ClientOptions } from "openapi-fetch";
import { expect, it } from "vitest";
import type { components, paths } from "../../dist/openapi.d.ts";
import { IS_REMOVED, KEY, ORIGIN, UNTIL_REMOVAL } from "./service.ts";

type NewPet = components["schemas"]["NewPet"];

const OPTIONS: ClientOptions = { baseUrl: `${ORIGIN}/v1`, headers: KEY };
const client = createClient<paths>(OPTIONS);

it.skipIf(IS_REMOVED)(`creates, lists and gets an animal${UNTIL_REMOVAL}`, async () => {
  const pet: NewPet = { name: "Typed", categoryId: 3, status: "pending" };
  const { data: created, response } = await client.POST("/pets", { body: pet });
  expect(response.status).toBe(201);
  expect(created).toEqual({ id: expect.any(Number), ...pet });
  const after = (created?.id ?? 0) - 1;
  const { data: pets } = await client.GET("/pets", { params: { query: { status: "pending", limit: 1, after } } });
  expect(pets).toEqual([created]);
  const { data: got } = await client.GET("/pets/{petId}", { params: { path: { petId: created?.id ?? 0 } } });
  expect(got).toEqual(created);
});

it("has types for an animal without a status, and for errors", async () => {
  const { data } = await client.POST("/pets", { body: { name: "Typed", categoryId: 3 } });
  expect(data?.status).toBe("available");
  const { error } = await client.GET("/pets", { params: { query: { limit: 101 } } });
  expect(error?.code satisfies components["schemas"]["Error"]["code"] | undefined).toBe("bad_request");
});

it("keeps int64 exact if it writes and reads JSON as the guide says", async () => {
  const toText = (_key: string, value: unknown) => (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value);
  const fromText = (_key: string, value: unknown, { source }: { source: string }) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(source) : value;
  const exact = createClient<paths>({ ...OPTIONS, bodySerializer: (body) => JSON.stringify(body, toText) });
  const pet = { name: "Typed", categoryId: 9223372036854775807n };
  // By default, openapi-typescript generates number for an int64.
  const { data } = await exact.POST("/pets", { body: pet as unknown as NewPet, parseAs: "text" });
  expect(JSON.parse(data ?? "", fromText)).toMatchObject(pet);
});
