// The static site over HTTP, and what it is built from.

import { expect, it } from "vitest";
import { describeOperation, operations } from "../../scripts/build/reference.ts";
import { description } from "../../src/openapi/document.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { printJson } from "../../src/values/json.ts";
import { componentOf, describedOperations } from "../conformance.ts";
import { send } from "./send.ts";
import { KEY, ORIGIN } from "./service.ts";

const EVERYWHERE = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};
// RFC 8631 names the relations.
const PAGE = { Link: '</openapi.json>; rel="service-desc"; type="application/json"' };
const DESCRIPTION = { Link: '</>; rel="service-doc"; type="text/html"', "Access-Control-Allow-Origin": "*" };

it.each([
  ["/", { "Content-Type": "text/html; charset=utf-8", ...PAGE }],
  ["/openapi.json", { "Content-Type": "application/json", ...DESCRIPTION }],
])("responds to GET and HEAD %s with its headers, and to POST with 405", async (path, own) => {
  const expected = { ...own, ...EVERYWHERE };
  for (const method of ["GET", "HEAD"]) {
    const { status, headers } = await send(ORIGIN + path, { method });
    expect(status).toBe(200);
    const names = Object.keys(expected);
    expect(Object.fromEntries(names.map((name) => [name, headers.get(name)]))).toEqual(expected);
  }
  const { status, headers } = await send(ORIGIN + path, { method: "POST" });
  expect(status).toBe(405);
  expect(headers.get("Allow")).toBe("GET, HEAD");
});

it("has the exact description", async () => {
  const { text } = await send(`${ORIGIN}/openapi.json`);
  expect(text.trim()).toBe(printJson(description, 2));
  expect(text).toMatch(/"minimum": -9223372036854775808,\s+"maximum": 9223372036854775807/);
});

it("links to every section and operation, and only to what exists, on its own origin", async () => {
  const { text } = await send(ORIGIN);
  const links = Array.from(text.matchAll(/(?:href|src)="([^"]*)"/g), ([, link = ""]) => link);
  const ids = Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => `#${id}`);
  const sections = Array.from(text.matchAll(/<li><a href="([^"]+)">/g), ([, id]) => id);
  expect(sections).toEqual(Array.from(text.matchAll(/<h2 id="([^"]+)"/g), ([, id]) => `#${id}`));
  expect(sections).toEqual(expect.arrayContaining(describedOperations.map(({ operationId }) => `#${operationId}`)));
  expect(ids).toContain(/#[^>]+/.exec(DEPRECATION_HEADERS.Link)?.[0]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(links.filter((link) => link.startsWith("#") && !ids.includes(link))).toEqual([]);
  for (const path of new Set(links.filter((link) => !/^(#|data:,)/.test(link)))) {
    expect((await send(ORIGIN + path)).status, path).toBe(200);
  }
});

it.each(["/v1", "/v1/", "/v1/index.html"])("leaves %s to the Worker", async (path) => {
  expect((await send(ORIGIN + path)).status).toBe(401);
  expect((await send(ORIGIN + path, { headers: KEY })).status).toBe(404);
});

it.each(["/nothing", "/reference", "/guide.md"])("responds to %s with 404 and an Error body", async (path) => {
  const { status, text } = await send(ORIGIN + path);
  expect(status).toBe(404);
  expect(JSON.parse(text).code).toBe("not_found");
});

it("has a link to each parameter, property, response and header, except those that callers do not need", async () => {
  const { text } = await send(ORIGIN);
  const isLinked = (id: string) => text.includes(`<strong id="${id}"><a href="#${id}"><code>`);
  const missing = describedOperations.flatMap(({ operationId, parameters, requestBody, responses }) => {
    const body = requestBody?.content["application/json"].schema;
    const headers = Object.values(responses).flatMap((response) => Object.keys(response.headers));
    const listed = headers.filter((name) => !["Allow", "Worker-Version"].includes(name));
    const names = [
      ...parameters.map(({ name }) => name),
      ...Object.keys((body && componentOf(body))?.["properties"] ?? {}),
      ...Object.keys(responses),
      ...listed.map((name) => `headers-${name}`),
    ];
    const isHere = (name: string) => ["all-operations", operationId].some((place) => isLinked(`${place}-${name}`));
    return names.filter((name) => !isHere(name)).map((name) => `${operationId}-${name}`);
  });
  expect(missing).toEqual([]);
  expect(["createPet-422", "createPet-Idempotency-Key", "createPet-name", "Error-code"].filter(isLinked)).toHaveLength(
    4,
  );
});

it("describes an operation whose response has no body", () => {
  const [operation = expect.fail()] = operations.filter(({ operationId }) => operationId === "getPet");
  const deleted = { 204: { description: "The animal was deleted.", headers: {} } };
  const text = describeOperation({ ...operation, method: "DELETE", responses: deleted });
  expect(text).toContain('"$ANIMAL_STORE/pets/1" \\\n  -X DELETE \\\n');
  expect(text).toContain('  method: "DELETE",\n');
  expect(text).toContain("requests.delete(");
  expect(text).toContain("if (status !== 204) {\n");
  expect(text).toContain("if status != 204:\n");
  expect(text).not.toContain("undefined");
});

it("does not describe an operation with a keyword that it does not show", () => {
  const [{ ...operation } = expect.fail()] = operations;
  const [parameter = expect.fail()] = operation.parameters;
  const describeWith = (changed: object) => () =>
    describeOperation({ ...operation, parameters: [Object.assign({ ...parameter }, changed)] });
  expect(describeWith({ explode: true })).toThrow("the keyword explode of limit");
  expect(describeWith({ schema: { type: "string", minLength: 5 } })).toThrow("the keyword minLength of limit");
});
