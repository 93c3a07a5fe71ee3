// The check that every other test relies on must be able to fail.

import { describe, expect, it } from "vitest";
import { expectDescribed } from "../conformance.ts";

const PET = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}';
const JSON_TYPE = { "Content-Type": "application/json", "Worker-Version": "v1" };
const OK = { ...JSON_TYPE, "x-d1-bookmark": "b" };
const CREATED = { ...OK, Location: "/v1/pets/1" };
const NOT_ALLOWED = { ...JSON_TYPE, Allow: "GET, HEAD, OPTIONS, POST" };
const refused = (status: number, code: string) => JSON.stringify({ code, message: "No.", status });

function check(method: string, path: string, status: number, headers: Record<string, string>, text: string) {
  return () => expectDescribed(method, path, { status, headers: new Headers(headers), text });
}

describe("a response is validated against the description", () => {
  it("and passes when it is described", () => {
    check("GET", "/v1/pets?limit=1", 200, OK, `[${PET}]`)();
    check("POST", "/v1/pets", 201, CREATED, PET)();
    check("HEAD", "/v1/pets", 200, OK, "")();
    check("PURGE", "/v1/pets", 405, NOT_ALLOWED, refused(405, "method_not_allowed"))();
    check("GET", "/nothing", 404, JSON_TYPE, refused(404, "not_found"))();
  });

  it.each([
    ["a status that is not described", check("GET", "/v1/pets", 204, {}, "")],
    ["a status of a different operation", check("GET", "/v1/pets", 404, JSON_TYPE, refused(404, "not_found"))],
    ["a success on a path that is not described", check("GET", "/v1/dogs", 200, OK, "[]")],
    ["a different media type", check("GET", "/v1/pets", 200, { ...OK, "Content-Type": "text/plain" }, "[]")],
    ["no media type", check("GET", "/v1/pets", 200, { ...OK, "Content-Type": "" }, "[]")],
    ["an object instead of an array", check("GET", "/v1/pets", 200, OK, PET)],
    ["a pet without a name", check("GET", "/v1/pets", 200, OK, `[${PET.replace("name", "nome")}]`)],
    ["a pet with an unknown status", check("POST", "/v1/pets", 201, CREATED, PET.replace("available", "gone"))],
    ["an id in quotes", check("POST", "/v1/pets", 201, CREATED, PET.replace("1", '"1"'))],
    ["a missing header", check("POST", "/v1/pets", 201, OK, PET)],
    ["a malformed header", check("POST", "/v1/pets", 201, { ...CREATED, Location: "1" }, PET)],
    ["a header that is not described", check("GET", "/v1/pets", 200, CREATED, "[]")],
    ["an unknown code", check("GET", "/v1/pets", 400, JSON_TYPE, refused(400, "oops"))],
    ["a body for HEAD", check("HEAD", "/v1/pets", 200, OK, "[]")],
  ])("and fails with %s", (_, checking) => {
    expect(checking).toThrow(/ was answered /);
  });
});
