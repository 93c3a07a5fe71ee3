import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import service from "../../src/index.ts";
import { describedOperations, expectDescribed } from "../conformance.ts";
import { call, expectError, insertRows, ORIGIN, requestTo } from "./call.ts";

describe("an unknown path", () => {
  it.each(["/v1", "/v1/Pets", "/v1/pets/1/name", "/v1//pets"])("%s is 404", async (path) => {
    expectError(await call(path), "path_not_found");
    expectError(await call(path, { method: "POST", body: "{}" }), "path_not_found");
  });

  it.each(["/v1/", "/v1/pets/", "/v1/nothing/"])("%s is 404, and the slash is named", async (path) => {
    expectError(await call(path), "path_not_found", "There is nothing at this path. Paths do not end with a slash.");
  });

  it.each(["/pets", "/v1pets", "/V1/pets"])("%s, outside /v1, is 404 without a key", async (path) => {
    expectError(await call(path, { authorization: null }), "path_not_found");
  });
});

it.each([...Map.groupBy(describedOperations, ({ path }) => path)])("any other method on %s is 405", async (_, all) => {
  const methods = all.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  const allow = [...methods, "OPTIONS"].sort().join(", ");
  const [path] = requestTo(all[0] ?? expect.fail());
  for (const method of ["DELETE", "PATCH", "POST", "PURGE", "PUT"].filter((other) => !methods.includes(other))) {
    const message = `${method} is not allowed here; use ${allow}.`;
    const answer = await call(path, { method });
    expectError(answer, "method_not_allowed", message);
    expect(answer.headers.get("Allow")).toBe(allow);
  }
});

/** Sends a URL that HTTP can deliver but the Request constructor rejects. */
function fetchRaw(url: string): Promise<Response> {
  const request = new Request(`${ORIGIN}/v1/pets`, { headers: { Authorization: "Bearer first-key-for-tests" } });
  const raw = new Proxy(request, { get: (target, name) => (name === "url" ? url : Reflect.get(target, name)) });
  return service.fetch(raw, env);
}

it("a Host header that is not a valid host is 400 with an Error body, and not logged", async () => {
  const log = vi.spyOn(console, "error");
  const response = await fetchRaw("http://a:99999/v1/pets");
  const answer = { status: response.status, headers: response.headers, text: await response.text() };
  expectError(answer, "invalid_request", "The Host header must be a valid host, with or without a port.");
  expectDescribed("GET", "/v1/pets", answer);
  expect(log).not.toHaveBeenCalled();
});

describe("a URL that is not normalized", () => {
  it.each(["/v1/pets/.", "/v1/pets/x/%2E%2e"])("%s is /v1/pets/: 404", async (path) => {
    expect((await fetchRaw(ORIGIN + path)).status).toBe(404);
  });

  it("has a query that ends where the URL ends", async () => {
    expect((await fetchRaw(`${ORIGIN}/v1/pets?limit=1\u2028`)).status).toBe(400);
  });

  it.each(["/v1\\pets?limit=1", "/v1/x/../pets?limit=1"])("%s is /v1/pets, also in the next link", async (path) => {
    await insertRows(2);
    const { status, headers } = await fetchRaw(ORIGIN + path);
    expect(status).toBe(200);
    expect(headers.get("Link")).toBe(`<${ORIGIN}/v1/pets?limit=1&after=1>; rel="next"`);
  });
});

it.each(["/v1/pets?limit=1", "/v1/pets?limit=0", "/v1/pets/1", "/v1/nothing"])(
  "HEAD %s answers like GET, without the body",
  async (path) => {
    await insertRows(2);
    const get = await call(path);
    const head = await call(path, { method: "HEAD" });
    expect(head.text).toBe("");
    expect(head.status).toBe(get.status);
    for (const { headers } of [head, get]) headers.delete("x-d1-bookmark"); // it differs from one read to the next
    expect([...head.headers]).toEqual([...get.headers]);
  },
);

it.each(["/v1/pets", "/v1/pets/1", "/nothing"])("OPTIONS %s gets the same 204, without a key", async (path) => {
  const answer = await call(path, { method: "OPTIONS", authorization: null });
  expect(answer.status).toBe(204);
  expect(answer.text).toBe("");
  const methods = new Set(["HEAD", "OPTIONS", ...describedOperations.map(({ method }) => method)]);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "access-control-allow-methods": [...methods].sort().join(", "),
    "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, x-d1-bookmark",
    "access-control-max-age": "86400",
  });
});
