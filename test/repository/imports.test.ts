// Which folders import which: the map in docs/CONTRIBUTING.md is the rule. Biome finds cycles between files
// (noImportCycles), but not between folders, and it ignores types.

import { globSync, readFileSync } from "node:fs";
import { dirname, posix, sep } from "node:path";
import { expect, it } from "vitest";

/** What each file imports, by paths from the root. */
const imports = new Map(
  globSync("{src,scripts}/**/*.{ts,js}").map((path) => {
    const file = path.replaceAll(sep, "/");
    const paths = readFileSync(file, "utf8").matchAll(/\b(?:from|import)\b[\s(]*"(\.[^"]+)"/g);
    return [file, Array.from(paths, ([, to = ""]) => posix.join(dirname(file), to))];
  }),
);

it("folders import what the map in docs/CONTRIBUTING.md shows, and nothing else", () => {
  const [, map = ""] = /^```mermaid\n([\s\S]*?)^```/m.exec(readFileSync("docs/CONTRIBUTING.md", "utf8")) ?? [];
  const folders = Object.fromEntries(Array.from(map.matchAll(/(\w+)\["(\S+)\//g), ([, id, folder]) => [id, folder]));
  const arrows = Array.from(map.matchAll(/^ *(\w+).* --> (.+)$/gm)).flatMap(([, from = "", targets = ""]) =>
    targets.split(" & ").map((to) => `${folders[from]} --> ${folders[to]}`),
  );
  const found = [...imports].flatMap(([file, paths]) =>
    paths.filter((to) => dirname(to) !== dirname(file)).map((to) => `${dirname(file)} --> ${dirname(to)}`),
  );
  expect([...new Set(found)].sort()).toEqual(arrows.sort());
});

it("no description is a part of the Worker", () => {
  const parts = new Set(["src/index.ts"]);
  for (const part of parts) for (const path of imports.get(part) ?? []) parts.add(path);
  expect([...parts].filter((path) => /openapi|description/.test(path))).toEqual([]);
  expect(parts).toContain("src/values/int64.ts");
});
