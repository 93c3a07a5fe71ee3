// The OpenAPI 3.1 document, derived from the schemas that validate requests and the constants in responses. It is built
// ahead of time (scripts/build/build.ts): the Worker neither contains nor creates it.

import { INT64 } from "../values/int64.ts";
import { errorComponents } from "./components.ts";
import { describePaths } from "./paths.ts";
import { petComponents, petPaths, petTag } from "./pets.ts";
import { componentSchemas } from "./schemas.ts";

export const description = {
  openapi: "3.1.0",
  info: {
    title: "Animal store",
    version: "1.0.0",
    summary: "List the animals in the store, add one, or get one.",
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
  paths: describePaths(petPaths),
  components: {
    securitySchemes: {
      apiKey: {
        type: "http",
        scheme: "bearer",
        description: "`Bearer`, a space and an API key, which the operator of the service gives you.",
      },
    },
    schemas: componentSchemas({ ...petComponents, ...errorComponents }),
  },
};
