// The description matches the interface and the service: what is required, its types, and the headers that browsers can
// send and read.

import type { Schema } from "@cfworker/json-schema";
import { expect, it } from "vitest";
import { description } from "../../src/description.ts";
import { ALLOWED_HEADERS } from "../../src/http/responses.ts";
import { router } from "../../src/router.ts";
import { printJson } from "../../src/values/json.ts";
import { componentOf, type DescribedOperation, describedOperations } from "../conformance.ts";

const TESTS = import.meta.glob<string>("./*.test.ts", { query: "?raw", import: "default", eager: true });

it("describes the routes", () => {
  const routed = router.routes
    .filter(([method]) => !["ALL", "OPTIONS"].includes(method))
    .map(([method, , , path]) => `${method} ${path?.replaceAll(/:(\w+)/g, "{$1}")}`);
  expect(describedOperations.map(({ method, path }) => `${method} /v1${path}`).sort()).toEqual(routed.sort());
});

// What operation.ts tests of all operations.
it.each(describedOperations)("has a test of $operationId in a file with its name", ({ operationId }) => {
  const file = `./${operationId.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.test.ts`;
  const call = `testOperation("${operationId}"`;
  expect(`\n${TESTS[file]}`, `${file} must call ${call}, …)`).toContain(`\n${call}`);
});

it("describes the headers that a browser may send", () => {
  const parameters = describedOperations.flatMap((operation) => operation.parameters.filter((p) => p.in === "header"));
  const names = new Set(["Authorization", "Content-Type", ...parameters.map(({ name }) => name)]);
  expect(ALLOWED_HEADERS.toSorted()).toEqual([...names].sort());
});

it("has no integer beyond 2^53 − 1 outside of its texts", () => {
  expect(printJson(description)).not.toMatch(/":-?\d{16}/);
});

it("marks only getPet as deprecated", () => {
  const marked = describedOperations.filter(({ deprecated }) => deprecated);
  expect(marked.map(({ operationId }) => operationId)).toEqual(["getPet"]);
});

it("requires the bearer key, and every body and path parameter", () => {
  expect(description.security).toEqual([{ apiKey: [] }]);
  expect(description.components.securitySchemes.apiKey).toMatchObject({ type: "http", scheme: "bearer" });
  for (const { requestBody, parameters } of describedOperations) {
    expect(requestBody?.required ?? true).toBe(true);
    expect(parameters.filter((parameter) => parameter.in === "path" && !parameter.required)).toEqual([]);
  }
});

it.each(describedOperations)("describes each part of $operationId, and each id as an int64", (operation) => {
  const properties = bodiesOf(operation).flatMap(({ schema }) => Object.entries(schemaOf(schema).properties ?? {}));
  const parts = operation.parameters.map(({ name, schema, ...part }) => [name, { ...schema, ...part }] as const);
  for (const [name, property] of properties) expect(property, name).toMatchObject({ examples: [expect.anything()] });
  for (const [name, part] of [...properties, ...parts]) {
    expect(part, name).toMatchObject({ description: expect.stringMatching(/\w/) });
    if (/^id$|Id$|^after$/.test(name)) expect(part, name).toMatchObject({ type: "integer", format: "int64" });
  }
});

it("does not limit the codes of errors", () => {
  const { code } = componentOf({ $ref: "#/components/schemas/Error" }).properties ?? {};
  expect(code).toEqual({ type: "string", description: expect.any(String), examples: [expect.any(String)] });
});

const bodiesOf = ({ requestBody, responses }: DescribedOperation) =>
  [requestBody, ...Object.values(responses)].flatMap((part) => part?.content["application/json"] ?? []);

/** The schema of a component, or of its items. */
function schemaOf(schema: Schema): Schema {
  const component = componentOf(schema);
  return component.properties ? component : schemaOf(component.items as Schema);
}
