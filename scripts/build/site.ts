// Writes the folder of static files: the page at /, which has the guide and the operations, and openapi.json.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Marked } from "marked";
import { gfmHeadingId } from "marked-gfm-heading-id";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describeOperations, operations } from "./reference.ts";

const SITE = join(import.meta.dirname, "../../dist/site");
const SOURCES = join(import.meta.dirname, "../../src/site");
const MARKER = "<!-- operations -->";

// Not imported: its types would add those of the DOM, which contradict those of Workers.
const highlighter = createRequire(import.meta.url)("highlight.js/lib/common");
const markdown = new Marked(gfmHeadingId(), {
  walkTokens(token) {
    if (token.type !== "code" || !token.lang) return;
    token.text = highlighter.highlight(token.text, { language: token.lang }).value;
    token.escaped = true;
  },
});

/** Writes only what differs, because two builds may do so at the same moment. `commit`: what the foot of the page names, if any. */
export function buildSite(commit: string): void {
  const site = new Map(readdirSync(SOURCES).map((name) => [name, readFileSync(join(SOURCES, name))]));
  site.set("openapi.json", Buffer.from(`${printJson(description, 2)}\n`));
  const parts = pageParts(String(site.get("guide.md")), commit);
  const page = String(site.get("index.html")).replaceAll(/\{(\w+)\}/g, (_, name) => parts[name] ?? "");
  site.set("index.html", Buffer.from(page));
  site.delete("guide.md");

  mkdirSync(SITE, { recursive: true });
  for (const [name, content] of site) {
    const file = join(SITE, name);
    if (!existsSync(file) || !readFileSync(file).equals(content)) writeFileSync(file, content);
  }
  for (const name of readdirSync(SITE)) if (!site.has(name)) rmSync(join(SITE, name), { recursive: true, force: true });
}

/** What replaces each name in braces. */
function pageParts(guide: string, commit: string): Record<string, string> {
  const { title, version, summary } = description.info;
  // The marker stays in the HTML: it tells the groups of the navigation apart.
  const source = guide.replace(MARKER, () => [MARKER, describeOperations(), MARKER].join("\n\n"));
  const html = markdown.parse(source, { async: false });
  const [start = "", described = "", subjects = ""] = html.split(MARKER);
  const rows = operations.map(({ operationId, summary, deprecated, method, path }) => {
    const operation = `<a href="#${operationId}">${summary}</a>${deprecated ? " (deprecated)" : ""}`;
    return `<tr><td>${operation}</td><td><code>${method} ${path}</code></td></tr>`;
  });
  return {
    title,
    summary,
    version,
    commit: commit && `, built from commit <code>${commit}</code>`,
    contents: [group("Start", start), group("Operations", described), group("Guide", subjects)].join("\n"),
    operations: rows.join("\n"),
    guide: html.replaceAll(/<(h[23]) id="(.+?)">(.+?)<\/\1>/g, '<$1 id="$2"><a href="#$2">$3</a></$1>'),
  };
}

/** A group of the navigation: links to what has a heading in this part of the page. */
function group(title: string, html: string): string {
  const headings = html.matchAll(/<h2 id="(.+?)">(.+?)<\/h2>/g);
  const links = Array.from(headings, ([, id, text]) => `<li><a href="#${id}">${text}</a></li>`);
  return `<li>${title}<ul>${links.join("\n")}</ul></li>`;
}
