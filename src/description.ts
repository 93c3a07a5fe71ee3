// The OpenAPI 3.1 document, derived from the schemas that validate requests and the constants in responses. It is built
// ahead of time (scripts/build/build.ts): the Worker neither contains nor creates it.

import {
  completeOperation,
  errorSchemas,
  type Operation,
  type ResponseObject,
  sharedErrors,
} from "./openapi/components.ts";
import { componentSchemas, mapValues } from "./openapi/schemas.ts";
import { petComponents, petPaths, petTag } from "./pets/pet-description.ts";
import { INT64 } from "./values/int64.ts";

export const description = {
  openapi: "3.1.0",
  info: {
    title: "Animal store",
    version: "1.0.0",
    summary: "An HTTP API that stores animals.",
    description:
      "This service stores animals. Every operation needs an API key. An int64 is any integer from " +
      `${INT64.minimum} to ${INT64.maximum}; JavaScript's \`JSON.parse\` rounds those beyond 2^53 − 1. ` +
      "The guide, at the path / of the service, explains errors, pagination, retries and large integers, with " +
      "examples in curl, JavaScript and Python.",
    license: { name: "MIT", identifier: "MIT" },
  },
  servers: [{ url: "/v1" }],
  security: [{ apiKey: [] }],
  tags: [petTag],
  paths: mapValues(petPaths, (item) => mapValues(item, completeOperation)),
  components: {
    securitySchemes: {
      apiKey: {
        type: "http",
        scheme: "bearer",
        description: "`Bearer`, a space and an API key, which the operator of the service gives you.",
      },
    },
    schemas: componentSchemas({ ...petComponents, ...errorSchemas }),
    responses: sharedErrors,
  },
};

/** Each operation with its path and method, and with its responses in place of references to them. */
export const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    ...operation,
    path,
    method: method.toUpperCase(),
    responses: mapValues(operation.responses, resolve),
  })),
);

function resolve(response: Operation["responses"][string]): ResponseObject {
  if (!("$ref" in response)) return response;
  const components: Record<string, ResponseObject> = sharedErrors;
  const component = components[response.$ref.replace("#/components/responses/", "")];
  if (!component) throw new Error(`${response.$ref} is not described.`);
  return component;
}
