// What only a real connection shows: a body without a length that does not end.

import { expect, it } from "vitest";
import { send } from "./send.ts";
import { KEY, ORIGIN } from "./service.ts";

const PETS = `${ORIGIN}/v1/pets`;

it("rejects a body without a length at the limit, before it ends, and then serves the next request", async () => {
  const headers = { ...KEY, "Content-Type": "application/json" };
  const endless = { method: "POST", headers, body: Array(5).fill("x".repeat(1024)), ends: false };
  const { status, text } = await send(PETS, endless);
  expect(status).toBe(413);
  expect(JSON.parse(text).message).toBe("The body must be at most 4096 bytes.");
  expect((await send(PETS, { headers: KEY })).status).toBe(200);
});
