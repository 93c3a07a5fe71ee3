// What README.md and docs/ name is there, and what is there is named: nothing is forgotten where a change adds to it.

import type { Schema } from "@cfworker/json-schema";
import { describe, expect, it } from "vitest";
import contributing from "../../docs/CONTRIBUTING.md?raw";
import operating from "../../docs/OPERATIONS.md?raw";
import readme from "../../README.md?raw";
import { STATUS } from "../../src/http/errors.ts";
import { componentOf, operations } from "../conformance.ts";

const sources = Object.keys(
  import.meta.glob(["../../src/**/*.ts", "../../scripts/**/*.ts", "!**/worker-configuration.d.ts"]),
).map((path) => path.replace("../../", ""));

const tests: Record<string, string> = import.meta.glob("./*.test.ts", {
  query: "?raw",
  import: "default",
  eager: true,
});

const missingIn = (page: string, names: string[]): string[] => names.filter((name) => !page.includes(name));
const lineOf = (beginning: string): string => readme.split("\n").find((line) => line.startsWith(beginning)) ?? "";

const bodies = operations.flatMap(({ operationId, requestBody }) => {
  const schema = requestBody?.content["application/json"].schema;
  return schema
    ? [{ operationId, name: nameOf(schema), properties: Object.keys(componentOf(schema).properties ?? {}) }]
    : [];
});

function nameOf({ $ref = "" }: Schema): string {
  return $ref.replace(/^.*\//, "");
}

describe("README.md", () => {
  it("has every operation in its table", () => {
    const rows = operations.map(({ operationId, method, path }) => [`| \`${operationId}\``, `\`${method} /v1${path}`]);
    expect(rows.filter(([name = "", request = ""]) => !lineOf(name).includes(request))).toEqual([]);
  });

  it("has every error in its table", () => {
    const rows = Object.entries(STATUS).map(([code, status]) => `| ${status} | \`${code}\` |`);
    expect(missingIn(readme, rows)).toEqual([]);
  });

  it("has every parameter", () => {
    const names = operations.flatMap(({ parameters }) => parameters.map(({ name }) => name));
    expect(names.filter((name) => !RegExp(`[\`?&{]${name}[\`=}]`).test(readme))).toEqual([]);
  });

  it.each(bodies)("has every property of $name, in a line that begins with it", ({ name, properties }) => {
    const quoted = properties.map((property) => `\`${property}\``);
    expect(missingIn(lineOf(`- \`${name}\`: `), quoted)).toEqual([]);
  });
});

describe("docs/CONTRIBUTING.md", () => {
  const mapped = [...contributing.matchAll(/^\| `((src|scripts)\/[^`]+\.ts)`/gm)].map(([, name = ""]) => name);

  it("has every file of the sources in its map, and no other", () => {
    expect(sources.filter((name) => !mapped.includes(name))).toEqual([]);
    expect(mapped.filter((name) => !sources.includes(name))).toEqual([]);
  });
});

describe("test/worker/", () => {
  const fileOf = (operationId: string) =>
    `./${operationId.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.test.ts`;

  it("has a file for every operation", () => {
    const files = operations.map(({ operationId }) => fileOf(operationId));
    expect(files.filter((file) => tests[file] === undefined)).toEqual([]);
  });

  it.each(bodies)("has every property of $name in the file for $operationId", ({ operationId, properties }) => {
    expect(missingIn(tests[fileOf(operationId)] ?? "", properties)).toEqual([]);
  });
});

it.each(Object.entries({ "README.md": readme, "docs/CONTRIBUTING.md": contributing, "docs/OPERATIONS.md": operating }))(
  "%s links to what is there",
  (page, text) => {
    const there = ["docs/CONTRIBUTING.md", "docs/OPERATIONS.md", "README.md", "src/site/guide.md"];
    const folder = page.replace(/[^/]*$/, "");
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(
      ([, link = ""]) => new URL(link, `file:///${folder}`),
    );
    expect(links.map(({ pathname }) => pathname.slice(1)).filter((path) => !there.includes(path))).toEqual([]);
  },
);
