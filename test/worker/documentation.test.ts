// What would lead a reader astray: an operation that the README does not have, and links to nothing.

import { expect, it } from "vitest";
import contributing from "../../docs/CONTRIBUTING.md?raw";
import operating from "../../docs/OPERATIONS.md?raw";
import readme from "../../README.md?raw";
import { describedOperations } from "../conformance.ts";

const files = Object.keys(import.meta.glob(["../../*.*", "../../{docs,migrations,scripts,src,test}/**/*"])).map(
  (path) => path.replace("../../", ""),
);

it("README.md has every operation in its table", () => {
  const rows = readme.split("\n").filter((line) => line.startsWith("| `"));
  for (const { operationId, method, path } of describedOperations) {
    const row = rows.find((text) => text.startsWith(`| \`${operationId}\``));
    expect(row).toContain(`\`${method} /v1${path}`);
  }
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
