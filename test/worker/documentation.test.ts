// What README.md and docs/ name is there, and what is there is named: nothing is forgotten where a change adds to it.

import { describe, expect, it } from "vitest";
import contributing from "../../docs/CONTRIBUTING.md?raw";
import readme from "../../README.md?raw";
import { STATUS } from "../../src/errors.ts";
import { componentOf, operations } from "../conformance.ts";

/** The names in backquotes in the first column of the tables of a page. */
const firstCells = (page: string): string[] => [...page.matchAll(/^\| `([^`]+)`/gm)].map(([, name = ""]) => name);

describe("README.md", () => {
  it.each(operations)("has $operationId in its table of operations", ({ operationId, method, path }) => {
    const row = readme.split("\n").find((line) => line.startsWith(`| \`${operationId}\``));
    expect(row).toContain(`\`${method} /v1${path}`);
  });

  it.each(Object.entries(STATUS))("has %s in its table of errors, as %s", (code, status) => {
    expect(readme).toContain(`| ${status} | \`${code}\` |`);
  });

  it.each(operations)("has what $operationId takes", ({ parameters, requestBody }) => {
    const { properties = {} } = requestBody ? componentOf(requestBody.content["application/json"].schema) : {};
    const names = [...parameters.map(({ name }) => name), ...Object.keys(properties)];
    expect(names.filter((name) => !RegExp(`[\`?&{]${name}[\`=}]`).test(readme))).toEqual([]);
  });
});

describe("docs/CONTRIBUTING.md", () => {
  it("has every file of the sources in its map, and no other", () => {
    const sources = Object.keys(
      import.meta.glob(["../../src/**/*.ts", "../../scripts/*.ts", "!**/worker-configuration.d.ts"]),
    );
    const mapped = firstCells(contributing).filter((name) => /^(src|scripts)\/.*\.ts$/.test(name));
    expect(mapped.sort()).toEqual(sources.map((path) => path.replace("../../", "")).sort());
  });
});
