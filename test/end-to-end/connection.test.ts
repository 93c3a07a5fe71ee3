// What only a real connection shows: bodies without a length, methods that fetch rejects, and what the runtime adds.

import { describe, expect, it } from "vitest";
import { send } from "./send.ts";
import { IS_DEPLOYED, KEY, LOCAL_ONLY, ORIGIN } from "./service.ts";

const PETS = `${ORIGIN}/v1/pets`;
const POST = { method: "POST", headers: { ...KEY, "Content-Type": "application/json" } };

describe("over HTTP", () => {
  it("responds to HEAD without a body", async () => {
    const { status, headers, text } = await send(PETS, { method: "HEAD", headers: KEY });
    expect(status).toBe(200);
    expect(headers.get("Content-Type")).toBe("application/json");
    expect(text).toBe("");
  });

  it("rejects a body without a length at the limit, before it ends, and then serves the next request", async () => {
    const endless = { ...POST, body: Array(5).fill("x".repeat(1024)), ends: false };
    const { status, text } = await send(PETS, endless);
    expect(status).toBe(413);
    expect(JSON.parse(text).message).toBe("The body must be at most 4096 bytes.");
    expect((await send(PETS, { headers: KEY })).status).toBe(200);
  });

  it.skipIf(IS_DEPLOYED)(`leaves an unknown method to the runtime (501, RFC 9110)${LOCAL_ONLY}`, async () => {
    expect((await send(PETS, { method: "FROB", headers: KEY })).status).toBe(501);
  });
});
