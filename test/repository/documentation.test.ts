// What would lead a reader astray: an operation that the README does not have, and links to nothing.

import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { describedOperations } from "../conformance.ts";

it("README.md has every operation in its table", () => {
  const rows = readFileSync("README.md", "utf8").matchAll(/^\| `(\w+)`.*?\| `(\w+ \/v1[^?`]*)/gm);
  const operations = describedOperations.map(({ operationId, method, path }) => [operationId, `${method} /v1${path}`]);
  expect(Array.from(rows, ([, name, request]) => [name, request])).toEqual(operations);
});

it.each(["README.md", "docs/CONTRIBUTING.md", "docs/OPERATIONS.md"])("%s links only to files that exist", (page) => {
  const links = [...readFileSync(page, "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = ""]) =>
    new URL(link, `file:///${page}`).pathname.slice(1),
  );
  expect(links.filter((link) => !existsSync(link))).toEqual([]);
});
