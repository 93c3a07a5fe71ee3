// The static site over HTTP, what it is built from, and the examples of its operations.

import { describe, expect, it } from "vitest";
import { describeOperation, describeOperations, operations } from "../../scripts/build/reference.ts";
import { STATUS } from "../../src/http/errors.ts";
import { description } from "../../src/openapi/document.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { printJson } from "../../src/values/json.ts";
import { componentOf, describedOperations } from "../conformance.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { LANGUAGES, RAY } from "./languages.ts";
import { send } from "./send.ts";
import { API_KEY, addAnimal, IS_REMOVED, KEY, ORIGIN } from "./service.ts";

/** Responses that are not from the service. Without a status, that of a success. */
const FOREIGN: [status: number | undefined, body: string][] = [
  [302, ""],
  [undefined, ""],
  [undefined, '{"title":"Sign in"}'],
];
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

it("has a link to each parameter, property, response and header", async () => {
  const { text } = await send(ORIGIN);
  const isLinked = (id: string) => text.includes(`<strong id="${id}"><a href="#${id}"><code>`);
  const missing = describedOperations.flatMap(({ operationId, parameters, requestBody, responses }) => {
    const body = requestBody?.content["application/json"].schema;
    const headers = Object.values(responses).flatMap((response) => Object.keys(response.headers));
    const names = [
      ...parameters.map(({ name }) => name),
      ...Object.keys((body && componentOf(body))?.["properties"] ?? {}),
      ...Object.keys(responses),
      ...headers.map((name) => `headers-${name}`),
    ];
    const isHere = (name: string) => ["all-operations", operationId].some((place) => isLinked(`${place}-${name}`));
    return names.filter((name) => !isHere(name)).map((name) => `${operationId}-${name}`);
  });
  expect(missing).toEqual([]);
  expect(["createPet-422", "createPet-Idempotency-Key", "createPet-name", "Error-code"].filter(isLinked)).toHaveLength(
    4,
  );
});

it("describes an error once, on one line, and its body once", () => {
  const lines = describeOperations().matchAll(/^- <strong id="(.+)-([45]\d\d)">.+<small>`(\w+)`.*\n {2}.+$/gm);
  const errors = Array.from(lines, ([, place, status, code]) => [`${place} ${status}`, code]);
  const ofAll = [401, 403, 405, 429, 500, 503].map((status) => `all-operations ${status}`);
  const ofCreate = [400, 413, 415, 422, 500, 503].map((status) => `createPet ${status}`);
  const others = ["listPets 400", "getPet 404", "getPet 410"];
  expect(errors.map(([place]) => place).sort()).toEqual([...ofAll, ...ofCreate, ...others].sort());
  for (const [place = "", code = ""] of errors) expect(place).toMatch(RegExp(` ${Object(STATUS)[code]}$`));
  expect(describeOperations().split('"code":')).toHaveLength(2);
});

describe.each(operations)("the examples of $operationId", (operation) => {
  const isRemoved = operation.deprecated && IS_REMOVED ? " (SKIPPED: the operation was removed)" : "";

  for (const [language, { command, skipped }] of Object.entries(LANGUAGES)) {
    const missing = skipped || isRemoved;

    it.skipIf(missing)(`run in ${language}, and show why they fail${missing}`, async () => {
      const id = await addAnimal();
      const [, example = ""] =
        RegExp(`\`\`\`${language}\\n(.*?)\\n\`\`\``, "s").exec(describeOperation(operation)) ?? [];
      const call = (origin: string, API_KEY: string) => {
        const [file = "", ...options] = [...command, example.replace("/pets/1", `/pets/${id}`)];
        return outcome(launch(file, options, ".", { ANIMAL_STORE: `${origin}/v1`, API_KEY }));
      };
      expect(await call(ORIGIN, API_KEY)).toMatchObject({ status: 0, output: expect.stringMatching(/id\W+\d|204/) });
      const rejected = await call(ORIGIN, "wrong");
      expect(rejected.status).toBeGreaterThan(0);
      expect(rejected.output + rejected.errors).toMatch(/\b401\b[\s\S]*The API key is not valid/);
      const [success, { content }] =
        Object.entries(operation.responses).find(([status]) => status.startsWith("2")) ?? expect.fail();
      for (const [status = Number(success), body] of FOREIGN) {
        // A redirect leads to a response that looks right.
        const server = await startServer(({ url }, response) =>
          url === "/moved"
            ? response.writeHead(Number(success)).end(printJson(content?.["application/json"].example))
            : response.writeHead(status, { Location: "/moved", "cf-ray": RAY }).end(body),
        );
        const { status: exit, output, errors } = await call(server.origin, API_KEY);
        server.close();
        // curl only shows what it received.
        if (language === "sh") expect(output).toContain("Location: /moved");
        else expect(exit, output).toBeGreaterThan(0);
        expect(output + errors).toMatch(RegExp(`\\b${status}\\b[\\s\\S]*${RAY}`));
      }
    });
  }
});

it("describes an operation whose response has no body", () => {
  const [operation = expect.fail()] = operations.filter(({ operationId }) => operationId === "getPet");
  const deleted = { 204: { description: "The animal was deleted.", headers: {} } };
  const text = describeOperation({ ...operation, method: "DELETE", responses: deleted });
  expect(text).toContain('"$ANIMAL_STORE/pets/1" \\\n  -X DELETE \\\n');
  expect(text).toContain('  method: "DELETE",\n');
  expect(text).toContain("if (response.status !== 204) {\n");
  expect(text).toContain("if response.status != 204:\n");
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
