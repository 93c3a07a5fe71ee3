// The static site over HTTP, and how a program discovers the description.

import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describedOperations } from "../conformance.ts";
import { send } from "./send.ts";
import { KEY, ORIGIN } from "./service.ts";

const HTML = "text/html; charset=utf-8";
const LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';
// RFC 8631 names the relations, RFC 9727 the catalog.
const DESCRIPTION = '</openapi.json>; rel="service-desc"; type="application/json"';
const GUIDE = '</>; rel="service-doc"; type="text/html"';
const CATALOG = '</.well-known/api-catalog>; rel="api-catalog"';
const FROM_ANYWHERE = { "Access-Control-Allow-Origin": "*" };
const [CHUNK] = readdirSync("node_modules/@scalar/api-reference/dist/browser/chunks");

it.each([
  ["/", { "Content-Type": HTML, Link: `${DESCRIPTION}, ${CATALOG}` }],
  ["/reference", { "Content-Type": HTML }],
  ["/openapi.json", { "Content-Type": "application/json", Link: `${GUIDE}, ${CATALOG}`, ...FROM_ANYWHERE }],
  ["/.well-known/api-catalog", { "Content-Type": LINKSET, Link: CATALOG, ...FROM_ANYWHERE }],
  [`/scalar/chunks/${CHUNK}`, { "Cache-Control": "public, max-age=31536000, immutable" }],
])("responds to GET and HEAD %s with its headers", async (path, expected) => {
  for (const method of ["GET", "HEAD"]) {
    const { status, headers } = await send(ORIGIN + path, { method });
    expect(status).toBe(200);
    const names = Object.keys(expected);
    expect(Object.fromEntries(names.map((name) => [name, headers.get(name)]))).toEqual(expected);
  }
});

it("has the exact description", async () => {
  const { text } = await send(`${ORIGIN}/openapi.json`);
  expect(text.trim()).toBe(printJson(description, 2));
  expect(text).toMatch(/"minimum": -9223372036854775808,\s+"maximum": 9223372036854775807/);
});

it.each([
  ["/", []],
  ["/reference", ["style-src 'self' 'unsafe-inline'"]],
])("allows %s to load only from its own origin", async (path, exceptions) => {
  const { headers, text } = await send(ORIGIN + path);
  expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
  const policy = headers.get("Content-Security-Policy")?.split("; ") ?? [];
  expect(policy).toEqual(expect.arrayContaining(["default-src 'none'", "script-src 'self'"]));
  expect(policy.filter((directive) => /unsafe|http|\*|,/.test(directive))).toEqual(exceptions);
  expect(text).toContain(`<title>${description.info.title} API`);
  expect(text).not.toMatch(/(src|href)="(?![/#]|data:,)/);
});

it("links from the guide to every section and operation, and only to what exists", async () => {
  const { text } = await send(ORIGIN);
  const links = Array.from(text.matchAll(/href="([/#][^"]*)"/g), ([, link = ""]) => link);
  const sections = Array.from(text.matchAll(/<h2 id="([^"]+)">/g), ([, id]) => `#${id}`);
  const operations = describedOperations.map(({ tags, method, path }) => `/reference#tag/${tags[0]}/${method}${path}`);
  expect(links).toEqual(expect.arrayContaining([...sections, ...operations]));
  expect(links.filter((link) => link.startsWith("#") && !sections.includes(link))).toEqual([]);
  for (const path of new Set(links.map((link) => link.replace(/#.*/, "")))) {
    expect((await send(ORIGIN + path)).status, path).toBe(200);
  }
});

it("has a catalog of the service, its description and its guide", async () => {
  const { linkset } = JSON.parse((await send(`${ORIGIN}/.well-known/api-catalog`)).text);
  const service = { anchor: "/v1", "service-desc": [{ href: "/openapi.json" }], "service-doc": [{ href: "/" }] };
  expect(linkset).toMatchObject([{ item: [{ href: "/v1" }] }, service]);
});

it.each(["/", "/reference", "/openapi.json"])("responds to POST %s with 405 and Allow", async (path) => {
  const { status, headers } = await send(ORIGIN + path, { method: "POST" });
  expect(status).toBe(405);
  expect(headers.get("Allow")).toBe("GET, HEAD");
});

it.each(["/v1", "/v1/", "/v1/index.html", "/v1/reference"])("leaves %s to the Worker", async (path) => {
  expect((await send(ORIGIN + path)).status).toBe(401);
  expect((await send(ORIGIN + path, { headers: KEY })).status).toBe(404);
});

it.each(["/nothing", "/openapi.yaml", "/guide.md"])("responds to %s with 404 and an Error body", async (path) => {
  const { status, text } = await send(ORIGIN + path);
  expect(status).toBe(404);
  expect(JSON.parse(text).code).toBe("not_found");
});
