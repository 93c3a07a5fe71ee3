// The description matches the interface and the service: what is required, its types, and the headers that browsers can send
// and read.

import type { Schema } from "@cfworker/json-schema";
import { describe, expect, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { ALLOWED_HEADERS, EXPOSED_HEADERS } from "../../src/http/responses.ts";
import { componentOf, type DescribedResponse, describedHeaders, operations } from "../conformance.ts";

describe("the description", () => {
  it("describes the headers that a browser may read", () => {
    expect(EXPOSED_HEADERS.toSorted()).toEqual(describedHeaders.toSorted());
  });

  it("describes the headers that a browser may send", () => {
    const parameters = operations.flatMap((operation) => operation.parameters.filter((p) => p.in === "header"));
    const names = new Set(["Authorization", "Content-Type", ...parameters.map(({ name }) => name)]);
    expect(ALLOWED_HEADERS.toSorted()).toEqual([...names].sort());
  });

  it("requires the bearer key, and every body and path parameter", () => {
    expect(description.security).toEqual([{ apiKey: [] }]);
    expect(description.components.securitySchemes.apiKey).toMatchObject({ type: "http", scheme: "bearer" });
    for (const { requestBody, parameters } of operations) {
      expect(requestBody?.required ?? true).toBe(true);
      expect(parameters.filter((parameter) => parameter.in === "path" && !parameter.required)).toEqual([]);
      expect(["path", "query", "header"]).toEqual(expect.arrayContaining(parameters.map((parameter) => parameter.in)));
    }
  });

  it.each(operations)("has an int64 for every identifier of $operationId", ({ parameters, requestBody, responses }) => {
    const bodies = [requestBody, ...Object.values(responses)].flatMap((body) => bodyOf(body));
    const properties = bodies.flatMap(({ schema }) => Object.entries(schemaOf(schema).properties ?? {}));
    const described = [...properties, ...parameters.map(({ name, schema }) => [name, schema] as const)];
    for (const [name, schema] of described.filter(([name]) => /^id$|Id$|^after$/.test(name))) {
      expect({ name, schema }).toMatchObject({ name, schema: { type: "integer", format: "int64" } });
    }
  });

  it.each(operations)("has examples of $operationId with every property", ({ requestBody, responses }) => {
    const bodies = [requestBody, ...Object.values(responses)].flatMap((body) => bodyOf(body));
    for (const { schema, example } of bodies) {
      for (const value of [example].flat()) {
        expect(Object.keys(value ?? {}).sort()).toEqual(Object.keys(schemaOf(schema).properties ?? {}).sort());
      }
    }
  });
});

const bodyOf = (described: Pick<DescribedResponse, "content"> | undefined) =>
  described?.content ? [described.content["application/json"]] : [];

/** The schema of a component, or of its items. */
function schemaOf(schema: Schema): Schema {
  const component = componentOf(schema);
  return component.properties ? component : schemaOf(component.items as Schema);
}
