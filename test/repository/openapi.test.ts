// openapi.json is what the tools of callers read, so it obeys OpenAPI 3.1 and what Redocly's linter recommends.

import { createConfig, lintFromString } from "@redocly/openapi-core";
import { expect, it } from "vitest";
import { description } from "../../src/description.ts";
import { printJson } from "../../src/values/json.ts";

it("openapi.json breaks no rule of Redocly's linter", async () => {
  const rules = {
    "operation-tag-defined": "error",
    "no-invalid-schema-examples": "error",
    "no-required-schema-properties-undefined": "error",
  } as const;
  const config = await createConfig({ extends: ["recommended-strict"], rules });
  const problems = await lintFromString({ source: printJson(description), config });
  expect(problems.map(({ ruleId, message, location }) => ({ ruleId, message, at: location[0]?.pointer }))).toEqual([]);
});
