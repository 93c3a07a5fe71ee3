// What only a real connection shows: bodies without a length, methods that fetch rejects, and what the runtime adds.

import { describe, expect, inject, it } from "vitest";
import { KEY } from "./dev-server.ts";
import { send } from "./send.ts";

const PETS = `${inject("origin")}/v1/pets`;
const POST = { method: "POST", headers: { ...KEY, "Content-Type": "application/json" } };

describe("over HTTP", () => {
  it.each(["9223372036854775807", "-9223372036854775808"])("keeps %s exact, from createPet to getPet", async (id) => {
    const created = await send(PETS, { ...POST, body: `{"name":"🐶","categoryId":${id}}` });
    expect(created.status).toBe(201);
    expect(created.text).toContain(`"categoryId":${id},`);
    const location = new URL(created.headers.get("Location") ?? "", PETS).href;
    expect(await send(location, { headers: KEY })).toMatchObject({ status: 200, text: created.text });
  });

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

  it.each(["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "PURGE"])(
    "responds to %s with 405 and Allow",
    async (method) => {
      const { status, headers } = await send(PETS, { method, headers: KEY });
      expect(status).toBe(405);
      expect(headers.get("Allow")).toBe("GET, HEAD, OPTIONS, POST");
    },
  );

  it("leaves an unknown method to the runtime, which responds 501 (RFC 9110, section 15.6.2)", async () => {
    expect((await send(PETS, { method: "FROB", headers: KEY })).status).toBe(501);
  });

  it("rejects two keys in one header", async () => {
    const { status } = await send(PETS, { headers: { Authorization: "Bearer local-key, Bearer local-key" } });
    expect(status).toBe(401);
  });
});
