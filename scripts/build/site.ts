// Writes the folder of static files: the page at /, everything it loads, and openapi.json with the guide as its
// introduction. The page itself lists the operations, so that it can be read before its script has run, or without it.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";

const SOURCES = join(import.meta.dirname, "../../src/site");
const SCALAR = join(dirname(fileURLToPath(import.meta.resolve("@scalar/api-reference"))), "browser");
const SCALAR_MAIN = "standalone.esm.js";

/** Makes `folder` the site. Writes only what differs, because two builds may do so at the same moment. */
export function buildSite(folder: string): void {
  const site = new Map(filesIn(SOURCES).map((path) => [path, readFileSync(join(SOURCES, path))]));
  for (const path of filesIn(SCALAR)) {
    if (!/^(standalone\.esm|chunks[\\/].+)\.js$/.test(path)) continue;
    site.set(join("scalar", path), readFileSync(join(SCALAR, path)));
  }
  const guide = String(site.get("guide.md")).trim();
  const published = { ...description, info: { ...description.info, description: guide } };
  site.set("openapi.json", Buffer.from(`${printJson(published, 2)}\n`));
  site.set("index.html", Buffer.from(fillIn(String(site.get("index.html")))));
  site.delete("guide.md");

  for (const [path, content] of site) {
    const file = join(folder, path);
    if (existsSync(file) && readFileSync(file).equals(content)) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  for (const path of filesIn(folder)) if (!site.has(path)) rmSync(join(folder, path), { force: true });
}

/** The paths of all files, from the folder. */
function filesIn(folder: string): string[] {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => statSync(join(folder, path), { throwIfNoEntry: false })?.isFile());
}

/** Replaces the {placeholders} of the page. */
function fillIn(page: string): string {
  const { title, summary } = description.info;
  return page
    .replaceAll("{title}", escapeHtml(title))
    .replaceAll("{summary}", escapeHtml(summary))
    .replace("{operations}", listItems().join("\n        "))
    .replace("{preloads}", firstModules().join("\n    "));
}

function listItems(): string[] {
  const paths: Record<string, Record<string, { summary: string; deprecated?: boolean }>> = { ...description.paths };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { summary, deprecated }]) => {
      const request = `${method.toUpperCase()} ${description.servers[0]?.url}${path}`;
      const mark = deprecated ? " <em>deprecated</em>" : "";
      return `<li><code>${escapeHtml(request)}</code> ${escapeHtml(summary)}${mark}</li>`;
    }),
  );
}

const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

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
