// What README.md, docs/ and the tests must contain for every operation, property, resource and table, so that a change cannot
// forget one of them.

import type { Schema } from "@cfworker/json-schema";
import { describe, expect, it } from "vitest";
import contributing from "../../docs/CONTRIBUTING.md?raw";
import operating from "../../docs/OPERATIONS.md?raw";
import readme from "../../README.md?raw";
import { TABLES } from "../../scripts/backup/tables.ts";
import { STATUS } from "../../src/http/errors.ts";
import { componentOf, type DescribedOperation, operations } from "../conformance.ts";

const pages = { "README.md": readme, "docs/CONTRIBUTING.md": contributing, "docs/OPERATIONS.md": operating };
const files = Object.keys(import.meta.glob(["../../*.*", "../../{docs,migrations,scripts,src,test}/**/*"])).map(
  (path) => path.replace("../../", ""),
);
const tests: Record<string, string> = import.meta.glob("./*.test.ts", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The line or list item that starts with `start`, including the lines that it wraps onto. */
const itemOf = (start: string): string =>
  readme
    .split(/\n(?=[-|#]|\n)/)
    .find((item) => item.trimStart().startsWith(start))
    ?.replaceAll(/\s+/g, " ") ?? "";

const missingIn = (text: string, names: string[]): string[] => names.filter((name) => !text.includes(name));

function nameOf({ $ref = "", items }: Schema): string {
  return $ref ? $ref.replace(/^.*\//, "") : nameOf(items as Schema);
}

/** The components that are sent or returned, apart from errors and lists. */
const resources = [
  ...new Set(
    operations.flatMap(({ requestBody, responses }) => {
      const bodies = [requestBody, responses[200], responses[201]].flatMap((body) => body?.content ?? []);
      return bodies.map((body) => body["application/json"].schema).filter((schema) => !componentOf(schema).items);
    }),
  ),
].map((schema) => ({ name: nameOf(schema), properties: Object.keys(componentOf(schema).properties ?? {}) }));

describe("README.md", () => {
  it("has every operation in its table", () => {
    const rows = operations.map(({ operationId, method, path }) => [`| \`${operationId}\``, `\`${method} /v1${path}`]);
    expect(rows.filter(([name = "", request = ""]) => !itemOf(name).includes(request))).toEqual([]);
  });

  it("has every error in its table", () => {
    const rows = Object.entries(STATUS).map(([code, status]) => `| ${status} | \`${code}\` |`);
    expect(missingIn(readme, rows)).toEqual([]);
  });

  it("has every parameter", () => {
    const names = operations.flatMap(({ parameters }) => parameters.map(({ name }) => name));
    expect(names.filter((name) => !RegExp(`[\`?&{]${name}[\`=}]`).test(readme))).toEqual([]);
  });

  it.each(resources)("has a list item for $name that starts with its name", ({ name }) => {
    expect(itemOf(`- \`${name}\`: `)).not.toBe("");
  });

  it.each(resources.filter(({ properties }) => !properties.includes("id")))(
    "has every property of $name in the list item that starts with its name",
    ({ name, properties }) => {
      const quoted = properties.map((property) => `\`${property}\``);
      expect(missingIn(itemOf(`- \`${name}\`: `), quoted)).toEqual([]);
    },
  );
});

describe("docs/OPERATIONS.md", () => {
  it.each(TABLES)("says how a store is replaced, and what a line of $name may contain", ({ name, columns }) => {
    expect(operating).toContain(`DELETE FROM ${name}`);
    expect(missingIn(operating, Object.keys(columns))).toEqual([]);
  });
});

describe("test/worker/", () => {
  const fileOf = (operationId: string) =>
    `./${operationId.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.test.ts`;

  // Tested for every operation, or for every creation.
  const ASSERTED_ELSEWHERE = ["401", "405", "422", "500", "503"];

  it.each(operations)("has a file for $operationId, with all its own statuses and properties", (operation) => {
    const test = tests[fileOf(operation.operationId)] ?? "";
    const statuses = Object.keys(operation.responses).filter((status) => !ASSERTED_ELSEWHERE.includes(status));
    expect(statuses.filter((status) => !RegExp(`\\b${status}\\b`).test(test))).toEqual([]);
    expect(missingIn(test, propertiesOf(operation))).toEqual([]);
  });

  function propertiesOf({ requestBody }: DescribedOperation): string[] {
    return requestBody ? Object.keys(componentOf(requestBody.content["application/json"].schema).properties ?? {}) : [];
  }
});

it.each(Object.entries(pages))("%s links only to files that exist", (page, text) => {
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) =>
    new URL(link, `file:///${page}`).pathname.slice(1),
  );
  expect(
    links.filter((link) => !files.some((file) => file === link || file.startsWith(`${link.replace(/\/$/, "")}/`))),
  ).toEqual([]);
});
