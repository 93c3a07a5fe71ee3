import { describe, expect, it } from "vitest";
import { call, create, expectError } from "./service.ts";

const NOT_FOUND = { code: "not_found", message: "There is nothing at this path.", status: 404 };

describe("a path that is not routed", () => {
  it.each([
    "/v1",
    "/v1/",
    "/v1/pet",
    "/v1/Pets",
    "/V1/pets",
    "/v1/pets/",
    "/v1/pets/1/",
    "/v1/pets/1/name",
    "/v1//pets",
    "/v2/pets",
    "/v1pets",
    "/pets",
    "/nothing",
  ])("%s is 404", async (path) => {
    expectError(await call(path), NOT_FOUND);
    expectError(await call(path, { method: "POST", body: "{}" }), NOT_FOUND);
  });

  it.each(["/pets", "/v1pets", "/V1/pets"])("%s, outside /v1, needs no key", async (path) => {
    expectError(await call(path, { authorization: null }), NOT_FOUND);
  });
});

describe("a method that is not routed", () => {
  it.each([
    ["/v1/pets", ["PUT", "PATCH", "DELETE", "PROPFIND", "PURGE"], "GET, HEAD, POST, OPTIONS"],
    ["/v1/pets/1", ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"], "GET, HEAD, OPTIONS"],
    ["/v1/pets/x", ["POST"], "GET, HEAD, OPTIONS"],
  ])("on %s is 405 with Allow", async (path, methods, allow) => {
    for (const method of methods) {
      const answer = await call(path, { method });
      expectError(answer, {
        code: "method_not_allowed",
        message: `${method} is not allowed here; allowed are ${allow}.`,
        status: 405,
      });
      expect(answer.headers.get("Allow")).toBe(allow);
    }
  });
});

describe("HEAD", () => {
  it.each(["/v1/pets", "/v1/pets?limit=1", "/v1/pets?limit=0", "/v1/pets/1", "/v1/pets/9", "/v1/nothing", "/nothing"])(
    "on %s answers as GET does, without the body",
    async (path) => {
      await create({ name: "Rex", categoryId: 1 });
      await create({ name: "Ada", categoryId: 1 });
      const get = await call(path);
      const head = await call(path, { method: "HEAD" });
      expect(head.text).toBe("");
      expect(head.status).toBe(get.status);
      for (const { headers } of [head, get]) headers.delete("x-d1-bookmark"); // it differs from one read to the next
      expect([...head.headers]).toEqual([...get.headers]);
    },
  );
});

describe("OPTIONS", () => {
  it.each(["/v1/pets", "/v1/pets/1", "/v1/nothing", "/v1", "/nothing"])(
    "on %s is the same 204, without a key",
    async (path) => {
      const answer = await call(path, {
        method: "OPTIONS",
        authorization: null,
        headers: {
          Origin: "https://app.example",
          "Access-Control-Request-Method": "POST",
          "Access-Control-Request-Headers": "authorization, content-type",
        },
      });
      expect(answer.status).toBe(204);
      expect(answer.text).toBe("");
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        "access-control-allow-methods": "GET, HEAD, POST",
        "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, x-d1-bookmark",
        "access-control-max-age": "86400",
      });
    },
  );
});
