// A caller's own client, generated from the description: it compiles (npm run typecheck) and it works.

import createClient from "openapi-fetch";
import { expect, inject, it } from "vitest";
import type { components, paths } from "../../dist/openapi.d.ts";
import { KEY } from "./dev-server.ts";

const client = createClient<paths>({
  baseUrl: `${inject("origin")}/v1`,
  headers: KEY,
});

it("creates, lists and gets", async () => {
  const pet: components["schemas"]["NewPet"] = { name: "Typed", categoryId: 3, status: "pending" };
  const { data: created, response } = await client.POST("/pets", { body: pet });
  expect(response.status).toBe(201);
  expect(created).toEqual({ id: expect.any(Number), ...pet });
  const after = (created?.id ?? 0) - 1;
  const { data: pets } = await client.GET("/pets", { params: { query: { status: "pending", limit: 1, after } } });
  expect(pets).toEqual([created]);
  const { data: got } = await client.GET("/pets/{petId}", { params: { path: { petId: created?.id ?? 0 } } });
  expect(got).toEqual(created);
});

it("has the refusals typed", async () => {
  const { data, error } = await client.GET("/pets", { params: { query: { limit: 101 } } });
  expect(data).toBeUndefined();
  const code: components["schemas"]["Error"]["code"] | undefined = error?.code;
  expect(code).toBe("bad_request");
});

it("creates without a status", async () => {
  const pet: components["schemas"]["NewPet"] = { name: "Typed", categoryId: 3 };
  const { data: created } = await client.POST("/pets", { body: pet });
  expect(created).toEqual({ id: expect.any(Number), ...pet, status: "available" });
});
