// Writes the folder of static files: the API reference at /, everything it loads, and openapi.json with the guide as its
// introduction. Its HTML lists the operations, so that it can be read before its script has run, or without it.

import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";

const SITE = join(import.meta.dirname, "../../dist/site");
const SOURCES = join(import.meta.dirname, "../../src/site");
const SCALAR = join(dirname(fileURLToPath(import.meta.resolve("@scalar/api-reference"))), "browser");

/** Writes only what differs, because two builds may do so at the same moment. */
export function buildSite(): void {
  const site = new Map(filesIn(SOURCES).map((path) => [path, readFileSync(join(SOURCES, path))]));
  for (const path of globSync(["standalone.esm.js", "chunks/*.js"], { cwd: SCALAR })) {
    site.set(join("scalar", path), readFileSync(join(SCALAR, path)));
  }
  const guide = String(site.get("guide.md")).trim();
  const info = { ...description.info, description: guide };
  site.set("openapi.json", Buffer.from(`${printJson({ ...description, info }, 2)}\n`));
  const page = String(site.get("index.html"))
    .replaceAll("{title}", info.title)
    .replaceAll("{summary}", info.summary)
    .replace("{operations}", listItems().join("\n        "));
  site.set("index.html", Buffer.from(page));
  site.delete("guide.md");

  for (const [path, content] of site) {
    const file = join(SITE, path);
    if (existsSync(file) && readFileSync(file).equals(content)) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  for (const path of filesIn(SITE)) if (!site.has(path)) rmSync(join(SITE, path), { force: true });
}

/** The paths of all files, from the folder. */
function filesIn(folder: string): string[] {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => statSync(join(folder, path), { throwIfNoEntry: false })?.isFile());
}

function listItems(): string[] {
  return Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { summary, deprecated }]) => {
      const mark = deprecated ? " <em>deprecated</em>" : "";
      return `<li><code>${method.toUpperCase()} ${description.servers[0]?.url}${path}</code> ${summary}${mark}</li>`;
    }),
  );
}
