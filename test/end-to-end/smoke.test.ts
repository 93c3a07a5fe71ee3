// The smoke test of a deployment (`npm run smoke`): what every service must do, also one with callers. It only reads,
// and sends requests that must be rejected.

import { describe, expect, it } from "vitest";
import { isOnThisMachine } from "../../scripts/environment.ts";
import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { LOCAL_KEY } from "../dev-server.ts";
import { send } from "./send.ts";
import { IS_REMOVED, KEY, OPEN_ONLY, ORIGIN } from "./service.ts";

const PETS = `${ORIGIN}/v1/pets`;

describe("without a key", () => {
  it("has a page and a description", async () => {
    for (const path of ["/", "/openapi.json"]) expect((await send(ORIGIN + path)).status).toBe(200);
  });

  it("rejects a request without a key, a wrong key, and the published key of local services", async () => {
    const missing = await send(PETS);
    expect([missing.status, missing.headers.get("WWW-Authenticate")]).toEqual([401, CHALLENGE]);
    for (const key of ["wrong", ...(isOnThisMachine(ORIGIN) ? [] : [LOCAL_KEY])]) {
      const { status, headers } = await send(PETS, { headers: { Authorization: `Bearer ${key}` } });
      expect([status, headers.get("WWW-Authenticate")], key).toEqual([401, INVALID_TOKEN]);
    }
  });
});

describe.skipIf(OPEN_ONLY)(`with a key${OPEN_ONLY}`, () => {
  it("lists animals, also by status, and returns the next page if there is one", async () => {
    expect((await send(`${PETS}?status=sold&limit=1`, { headers: KEY })).status).toBe(200);
    const page = await send(`${PETS}?limit=1`, { headers: KEY });
    expect(page.status).toBe(200);
    const [, next] = /^<([^>]+)>; rel="next"$/.exec(page.headers.get("Link") ?? "") ?? [];
    if (next) expect((await send(ORIGIN + next.slice(new URL(next).origin.length), { headers: KEY })).status).toBe(200);
  });

  it("finds an animal or none, and announces that getPet will be removed", async () => {
    const { status, headers } = await send(`${PETS}/1`, { headers: KEY });
    expect(IS_REMOVED ? [410] : [200, 404]).toContain(status);
    for (const [name, value] of Object.entries(DEPRECATION_HEADERS)) expect(headers.get(name)).toBe(value);
  });

  // Even a service that accepted these could not store them: the table rejects the name.
  it.each([
    [400, "application/json"],
    [415, "text/plain"],
  ])("rejects an animal that is not valid with %i", async (status, type) => {
    const request = {
      method: "POST",
      headers: { ...KEY, "Content-Type": type },
      body: '{"name":" ","categoryId":1.5}',
    };
    expect((await send(PETS, request)).status).toBe(status);
  });

  it("has nothing at an unknown path", async () => {
    expect((await send(`${ORIGIN}/v1/nothing`, { headers: KEY })).status).toBe(404);
  });
});
