// Which folders import which: the map in docs/CONTRIBUTING.md is the rule. Biome finds cycles between files
// (noImportCycles), but not between folders, and it ignores types.

import { globSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { expect, it } from "vitest";

it("folders import what the map in docs/CONTRIBUTING.md shows, and nothing else", () => {
  const [, map = ""] = /^```mermaid\n([\s\S]*?)^```/m.exec(readFileSync("docs/CONTRIBUTING.md", "utf8")) ?? [];
  const folders = Object.fromEntries(Array.from(map.matchAll(/(\w+)\["(\S+)\//g), ([, id, folder]) => [id, folder]));
  const arrows = Array.from(map.matchAll(/^ *(\w+).* --> (.+)$/gm)).flatMap(([, from = "", targets = ""]) =>
    targets.split(" & ").map((to) => `${folders[from]} --> ${folders[to.replace(/\[.*/, "")]}`),
  );
  const imports = globSync("{src,scripts}/**/*.{ts,js}").flatMap((file) => {
    const from = dirname(file).replaceAll(sep, "/");
    const paths = readFileSync(file, "utf8").matchAll(/\b(?:from|import)\b[\s(]*"(\.[^"]+)"/g);
    return Array.from(paths, ([, path = ""]) => dirname(join(from, path)).replaceAll(sep, "/"))
      .filter((to) => to !== from)
      .map((to) => `${from} --> ${to}`);
  });
  expect([...new Set(imports)].sort()).toEqual(arrows.sort());
});
