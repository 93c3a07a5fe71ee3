// Writes the folder of static files: the guide at /, the API reference at /reference with everything it loads, and openapi.json.

import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Marked } from "marked";
import { getHeadingList, gfmHeadingId } from "marked-gfm-heading-id";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";

const SITE = join(import.meta.dirname, "../../dist/site");
const SOURCES = join(import.meta.dirname, "../../src/site");
const SCALAR = join(dirname(fileURLToPath(import.meta.resolve("@scalar/api-reference"))), "browser");

// Not imported: its types would add those of the DOM, which contradict those of Workers.
const highlighter = createRequire(import.meta.url)("highlight.js/lib/common");
const markdown = new Marked(gfmHeadingId(), {
  walkTokens(token) {
    if (token.type !== "code" || !token.lang) return;
    token.text = highlighter.highlight(token.text, { language: token.lang }).value;
    token.escaped = true;
  },
});

/** Writes only what differs, because two builds may do so at the same moment. */
export function buildSite(): void {
  const site = new Map(filesIn(SOURCES).map((path) => [path, readFileSync(join(SOURCES, path))]));
  for (const path of globSync(["standalone.esm.js", "chunks/*.js"], { cwd: SCALAR })) {
    site.set(join("scalar", path), readFileSync(join(SCALAR, path)));
  }
  site.set("openapi.json", Buffer.from(`${printJson(description, 2)}\n`));
  const parts = pageParts(String(site.get("guide.md")));
  for (const page of ["index.html", "reference.html"]) {
    site.set(page, Buffer.from(String(site.get(page)).replaceAll(/\{(\w+)\}/g, (_, name) => parts[name] ?? "")));
  }
  site.delete("guide.md");

  for (const [path, content] of site) {
    const file = join(SITE, path);
    if (existsSync(file) && readFileSync(file).equals(content)) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  for (const path of filesIn(SITE)) if (!site.has(path)) rmSync(join(SITE, path), { force: true });
}

function filesIn(folder: string): string[] {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => statSync(join(folder, path), { throwIfNoEntry: false })?.isFile());
}

/** What replaces each name in braces. */
function pageParts(source: string): Record<string, string> {
  const { title, summary } = description.info;
  const guide = markdown.parse(source, { async: false });
  const contents = getHeadingList().map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`);
  const operations = Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([name, { tags, summary, deprecated }]) => {
      const method = name.toUpperCase();
      const link = `<a href="/reference#tag/${tags[0]}/${method}${path}">${summary}</a>`; // Scalar's name for it
      return `<tr><td>${link}${deprecated ? " (deprecated)" : ""}</td><td><code>${method} /v1${path}</code></td></tr>`;
    }),
  );
  return { title, summary, guide, contents: contents.join("\n"), operations: operations.join("\n") };
}
