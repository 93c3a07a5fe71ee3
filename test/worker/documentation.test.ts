// What would lead a reader astray: an operation, a parameter or a property that no text has, and links to nothing.

import { expect, it } from "vitest";
import contributing from "../../docs/CONTRIBUTING.md?raw";
import operating from "../../docs/OPERATIONS.md?raw";
import readme from "../../README.md?raw";
import guide from "../../src/site/guide.md?raw";
import { componentOf, describedOperations } from "../conformance.ts";

const files = Object.keys(import.meta.glob(["../../*.*", "../../{docs,migrations,scripts,src,test}/**/*"])).map(
  (path) => path.replace("../../", ""),
);

it("README.md has every operation in its table", () => {
  const rows = readme.split("\n").filter((line) => line.startsWith("| `"));
  for (const { operationId, method, path, parameters } of describedOperations) {
    const query = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => `(?=.*[?&]${name}=)`);
    expect(rows).toContainEqual(
      expect.stringMatching(
        RegExp(`^\\| \`${operationId}\`${query.join("")}.*\`${method} /v1${path.replace(/[{}]/g, "\\$&")}`),
      ),
    );
  }
});

it.each([
  ["README.md", readme],
  ["guide.md", guide],
])("%s has every parameter and every property", (_, text) => {
  const parameters = describedOperations.flatMap((operation) => operation.parameters.map(({ name }) => name));
  const properties = Object.keys(componentOf({ $ref: "#/components/schemas/Pet" }).properties ?? {});
  const missing = [...parameters, ...properties].filter((name) => !RegExp(`[\`?&{]${name}[\`=}]`).test(text));
  expect(missing).toEqual([]);
});

it.each([
  ["README.md", readme],
  ["docs/CONTRIBUTING.md", contributing],
  ["docs/OPERATIONS.md", operating],
])("%s links only to files that exist", (page, text) => {
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) =>
    new URL(link, `file:///${page}`).pathname.slice(1),
  );
  expect(
    links.filter((link) => !files.some((file) => file === link || file.startsWith(`${link.replace(/\/$/, "")}/`))),
  ).toEqual([]);
});
