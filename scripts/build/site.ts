// Writes the folder of static files: the page at /, everything it loads, and openapi.json with the guide as its
// introduction. The page itself lists the operations, so that it can be read before its script has run, or without it.

import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";

const SOURCES = join(import.meta.dirname, "../../src/site");
const SCALAR = join(dirname(fileURLToPath(import.meta.resolve("@scalar/api-reference"))), "browser");
const SCALAR_MAIN = "standalone.esm.js";

interface Operation {
  summary: string;
  deprecated?: boolean;
}

/** Replaces `folder` with the site. */
export function buildSite(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  cpSync(SOURCES, folder, { recursive: true, filter: (path) => basename(path) !== "guide.md" });
  const filter = (path: string) => !path.endsWith(".map");
  for (const part of [SCALAR_MAIN, "chunks"]) {
    cpSync(join(SCALAR, part), join(folder, "scalar", part), { recursive: true, filter });
  }
  const guide = readFileSync(join(SOURCES, "guide.md"), "utf8").trim();
  const published = { ...description, info: { ...description.info, description: guide } };
  writeFileSync(join(folder, "openapi.json"), `${printJson(published, 2)}\n`);
  const page = join(folder, "index.html");
  writeFileSync(page, fillIn(readFileSync(page, "utf8")));
}

/** Replaces the {placeholders} of the page. */
function fillIn(page: string): string {
  const values = new Map([
    ["title", escapeHtml(description.info.title)],
    ["summary", escapeHtml(description.info.summary)],
    ["operations", listItems().join("\n        ")],
    ["preloads", firstModules().join("\n    ")],
  ]);
  return page.replace(/\{(\w+)\}/g, (placeholder, name) => values.get(name) ?? placeholder);
}

function listItems(): string[] {
  const paths: Record<string, Record<string, Operation>> = { ...description.paths };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { summary, deprecated }]) => {
      const request = `${method.toUpperCase()} ${description.servers[0]?.url}${path}`;
      return `<li><code>${escapeHtml(request)}</code> ${escapeHtml(summary)}${deprecated ? " <em>deprecated</em>" : ""}</li>`;
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
