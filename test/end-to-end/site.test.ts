// The static site over HTTP, what it is built from, and the examples of its operations.

import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { describeOperation, operations } from "../../scripts/build/reference.ts";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describedOperations } from "../conformance.ts";
import { launch, outcome } from "../processes.ts";
import { send } from "./send.ts";
import { API_KEY, addAnimal, IS_REMOVED, KEY, ORIGIN } from "./service.ts";

const EVERYWHERE = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
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
  expect(sections).toEqual(Array.from(text.matchAll(/<h2 id="([^"]+)">/g), ([, id]) => `#${id}`));
  expect(sections).toEqual(expect.arrayContaining(describedOperations.map(({ operationId }) => `#${operationId}`)));
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

const NO_CURL = spawnSync("sh", ["-c", "curl --version"]).status === 0 ? "" : " (SKIPPED: sh or curl is not installed)";

it.skipIf(NO_CURL)(`has an example of every operation in curl, which fails if the key is wrong${NO_CURL}`, async () => {
  const id = await addAnimal();
  for (const operation of operations) {
    if (operation.deprecated && IS_REMOVED) continue;
    const [, example = ""] = /```sh\n([\s\S]*?)\n```/.exec(describeOperation(operation)) ?? [];
    const call = (API_KEY: string) =>
      outcome(launch("sh", ["-c", example.replace("/1", `/${id}`)], ".", { ANIMAL_STORE: `${ORIGIN}/v1`, API_KEY }));
    expect(await call(API_KEY)).toMatchObject({ status: 0, output: expect.stringMatching(/^(\[?\{"id":\d|$)/) });
    expect(await call("wrong")).toMatchObject({ status: 22, output: expect.stringContaining('"status":401') });
  }
});

it("does not describe an operation with a keyword that it does not show", () => {
  const [{ ...operation } = expect.fail()] = operations;
  const [parameter = expect.fail()] = operation.parameters;
  const describeWith = (changed: object) => () =>
    describeOperation({ ...operation, parameters: [Object.assign({ ...parameter }, changed)] });
  expect(describeWith({ explode: true })).toThrow("the keyword explode of limit");
  expect(describeWith({ schema: { type: "string", minLength: 5 } })).toThrow("the keyword minLength of limit");
});
