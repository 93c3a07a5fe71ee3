// The static site over HTTP, and what it is built from.

import { expect, it } from "vitest";
import { describeOperation } from "../../scripts/build/reference.ts";
import { description, operations } from "../../src/description.ts";
import { STATUS } from "../../src/http/errors.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { printJson } from "../../src/values/json.ts";
import { send } from "./send.ts";
import { ORIGIN } from "./service.ts";

const EVERYWHERE = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};
// RFC 8631 names the relations.
const PAGE = { link: '</openapi.json>; rel="service-desc"; type="application/json"' };
const CLIENT = { "content-type": "text/plain; charset=utf-8", "access-control-allow-origin": "*" };
const DESCRIPTION = { link: '</>; rel="service-doc"; type="text/html"', "access-control-allow-origin": "*" };

it.each([
  ["/", { "content-type": "text/html; charset=utf-8", ...PAGE }],
  ["/client.ts", CLIENT],
  ["/openapi.json", { "content-type": "application/json", ...DESCRIPTION }],
])("responds to GET %s with its headers, and to POST with 405", async (path, own) => {
  const got = await send(ORIGIN + path);
  expect(got.status).toBe(200);
  expect(Object.fromEntries(got.headers)).toMatchObject({ ...own, ...EVERYWHERE });
  const posted = await send(ORIGIN + path, { method: "POST" });
  expect(posted.status).toBe(405);
  expect(posted.headers.get("Allow")).toBe("GET, HEAD");
});

it("has the exact description", async () => {
  const { text } = await send(`${ORIGIN}/openapi.json`);
  expect(text.trim()).toBe(printJson(description, 2));
});

it("links only to what exists, on its own origin, and has what the service and an error link to", async () => {
  const { text } = await send(ORIGIN);
  const links = Array.from(text.matchAll(/(?:href|src)="([^"]*)"/g), ([, link = ""]) => link);
  const ids = Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => `#${id}`);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toContain(/#[^>]+/.exec(DEPRECATION_HEADERS.Link)?.[0]);
  for (const code of Object.keys(STATUS)) expect(ids).toContain(`#error-${code}`);
  for (const { operationId } of operations) expect(ids).toContain(`#${operationId}-responses`);
  // What all operations have stands once.
  const shared = ids.filter((id) => /-(Authorization|API-Key-Name|Worker-Version)$/.test(id));
  expect(shared).toEqual(["#all-Authorization", "#all-header-API-Key-Name", "#all-header-Worker-Version"]);
  expect(links.filter((link) => link.startsWith("#") && !ids.includes(link))).toEqual([]);
  for (const path of new Set(links.filter((link) => !/^(#|data:,)/.test(link)))) {
    expect((await send(ORIGIN + path)).status, path).toBe(200);
  }
});

it("leaves everything under /v1 and what does not exist to the Worker", async () => {
  for (const path of ["/v1", "/v1/index.html"]) expect((await send(ORIGIN + path)).status).toBe(401);
  const { status, text } = await send(`${ORIGIN}/guide.md`);
  expect(status).toBe(404);
  expect(JSON.parse(text).code).toBe("path_not_found");
});

it("is not built with a keyword that it does not show", () => {
  const [operation = expect.fail()] = operations;
  const schema = Object.assign({ type: "integer" as const }, { multipleOf: 10 });
  const parameters = [{ name: "limit", in: "query" as const, description: "", schema }];
  expect(() => describeOperation({ ...operation, parameters })).toThrow("the keyword multipleOf of limit");
});
