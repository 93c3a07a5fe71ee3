// The description says what the service does, and no more: its operations are the routes, and what crosses origins is
// what it describes.

import type { Schema } from "@cfworker/json-schema";
import { describe, expect, it } from "vitest";
import service from "../../src/index.ts";
import { ALLOWED_HEADERS, EXPOSED_HEADERS } from "../../src/http/responses.ts";
import { componentOf, type DescribedResponse, describedHeaders, operations } from "../conformance.ts";

describe("the description", () => {
  it("has the routes of the Worker as its operations, and the Worker has its operations as routes", () => {
    const routes = service.routes
      .filter(([method, , , path = ""]) => path.startsWith("/v1/") && method !== "ALL")
      .map(([method, , , path = ""]) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
    const described = operations.map(({ method, path }) => `${method} /v1${path}`);
    expect(routes.sort()).toEqual(described.sort());
  });

  it("describes the headers that a browser may read", () => {
    expect(EXPOSED_HEADERS.toSorted()).toEqual(describedHeaders.toSorted());
  });

  it("describes the headers that a browser may send", () => {
    const parameters = operations.flatMap((operation) => operation.parameters.filter((p) => p.in === "header"));
    const names = new Set(["Authorization", "Content-Type", ...parameters.map(({ name }) => name)]);
    expect(ALLOWED_HEADERS.toSorted()).toEqual([...names].sort());
  });

  it.each(operations)("gives $operationId examples that have every property", ({ requestBody, responses }) => {
    const bodies = [requestBody, ...Object.values(responses)].flatMap((body) => bodyOf(body));
    for (const { schema, example } of bodies) {
      for (const value of [example].flat()) {
        expect(Object.keys(value ?? {}).sort()).toEqual(propertiesOf(schema));
      }
    }
  });
});

const bodyOf = (described: Pick<DescribedResponse, "content"> | undefined) =>
  described?.content ? [described.content["application/json"]] : [];

/** The names of the properties of a component, or of its items. */
function propertiesOf(schema: Schema): string[] {
  const { properties, items } = componentOf(schema);
  return properties ? Object.keys(properties).sort() : propertiesOf(items as Schema);
}
