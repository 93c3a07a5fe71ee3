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
const SCALAR_MAIN = "standalone.esm.js";

/** Writes only what differs, because two builds may do so at the same moment. */
export function buildSite(): void {
  const site = new Map(filesIn(SOURCES).map((path) => [path, readFileSync(join(SOURCES, path))]));
  for (const path of globSync([SCALAR_MAIN, "chunks/*.js"], { cwd: SCALAR })) {
    site.set(join("scalar", path), readFileSync(join(SCALAR, path)));
  }
  const guide = String(site.get("guide.md")).trim();
  const published = { ...description, info: { ...description.info, description: guide } };
  site.set("openapi.json", Buffer.from(`${printJson(published, 2)}\n`));
  site.set("index.html", Buffer.from(fillPlaceholders(String(site.get("index.html")))));
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

function fillPlaceholders(page: string): string {
  const { title, summary } = description.info;
  return page
    .replaceAll("{title}", title)
    .replaceAll("{summary}", summary)
    .replace("{operations}", listItems().join("\n        "))
    .replace("{preloads}", firstModules().join("\n    "));
}

function listItems(): string[] {
  const paths: Record<string, Record<string, { summary: string; deprecated?: boolean }>> = { ...description.paths };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { summary, deprecated }]) => {
      const mark = deprecated ? " <em>deprecated</em>" : "";
      return `<li><code>${method.toUpperCase()} ${description.servers[0]?.url}${path}</code> ${summary}${mark}</li>`;
    }),
  );
}

/** Links to the modules that Scalar imports statically, so that the browser loads them in parallel. */
function firstModules(): string[] {
  const found = new Set([SCALAR_MAIN]);
  for (const module of found) {
    const script = readFileSync(join(SCALAR, module), "utf8");
    for (const [, path = ""] of script.matchAll(/(?:from|import)"\.\/([^"]+\.js)"/g)) {
      found.add(join(dirname(module), path).replaceAll("\\", "/"));
    }
  }
  return [...found].map((module) => `<link rel="modulepreload" href="/scalar/${module}" />`);
}
