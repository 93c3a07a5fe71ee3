// Which folders may import which: from the top floor down, and none up. Biome finds cycles between files
// (noImportCycles), but not between folders, and it ignores types.

import { globSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { expect, it } from "vitest";

const WORKER = ["src", "src/pets", "src/http", "src/d1", "src/values"];
const MAY_IMPORT: Record<string, string[]> = {
  src: ["src/pets", "src/http"],
  "src/pets": ["src/http", "src/d1", "src/values"],
  "src/http": ["src/d1", "src/values"],
  "src/d1": [],
  "src/values": [],
  "src/site": [],
  "src/openapi": WORKER,
  scripts: WORKER,
  "scripts/build": ["scripts", "src/openapi", ...WORKER],
};

it("folders import only what is below them (docs/CONTRIBUTING.md)", () => {
  const wrong = globSync("{src,scripts}/**/*.{ts,js}").flatMap((file) => {
    const imports = readFileSync(file, "utf8").matchAll(/\b(?:from|import)\b[\s(]*"(\.[^"]+)"/g);
    const folder = dirname(file).replaceAll(sep, "/");
    const allowed = [folder, ...(MAY_IMPORT[folder] ?? [])];
    const folders = [...imports].map(([, path = ""]) => dirname(join(folder, path)).replaceAll(sep, "/"));
    return folders.filter((imported) => !allowed.includes(imported)).map((imported) => `${file} imports ${imported}`);
  });
  expect(wrong).toEqual([]);
});
