// Writes the folder of static files: the page at /, which has the guide and the operations, and openapi.json.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Marked } from "marked";
import { gfmHeadingId } from "marked-gfm-heading-id";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describeOperations, operations, titleOf } from "./reference.ts";

const SITE = join(import.meta.dirname, "../../dist/site");
const SOURCES = join(import.meta.dirname, "../../src/site");
const MARKER = "<!-- operations -->";
const SPLIT = "<!-- split -->";
const SECTION = /<h2 .*?(?=<h2 |$)/gs;
/** One sentence that ends in a colon. */
const SENTENCE = "(?:(?!</p>|\\. ).)*:</p>\\s*";
/** In a text. Shorter code, such as the name of a header, does not break. */
const LONG_CODE = /(?<!<pre>)<code>([^<]{30,})<\/code>/g;
const CODE = "<pre>.*?</pre>\\s*";
/**
 * Tabs or code, with the sentence that introduces it, if it is not the only text before it, and the response that it
 * gets.
 */
const EXAMPLE = RegExp(
  `((?<=</(p|ul|table)>\\s*)<p>${SENTENCE})?(<div>.*?</div>\\s*|${CODE})(<p>The response${SENTENCE}${CODE})?`,
  "gs",
);

// Not imported: its types would add those of the DOM, which contradict those of Workers.
const highlighter = createRequire(import.meta.url)("highlight.js/lib/common");
const markdown = new Marked(gfmHeadingId(), {
  walkTokens(token) {
    if (token.type !== "code" || !token.lang) return;
    token.text = highlighter.highlight(token.text, { language: token.lang }).value;
    token.escaped = true;
  },
});

/**
 * Writes only what differs, because two builds may do so at the same moment. `commit`: what the foot of the page names,
 * if any.
 */
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
  const source = guide.replace(MARKER, () => [MARKER, describeOperations(), MARKER].join("\n\n"));
  const html = markdown.parse(source, { async: false });
  const [start = [], described = [], subjects = []] = html.split(MARKER).map((part) => part.match(SECTION) ?? []);
  const rows = operations.map(({ operationId, method, path, ...operation }) => {
    const link = titleOf(operation).replace(/^.+?(?= <mark>|$)/, `<a href="#${operationId}">$&</a>`);
    return `<tr><td>${link}</td><td><code>${method} ${path}</code></td></tr>`;
  });
  return {
    title,
    summary,
    version,
    commit: commit && `, built from commit <code>${commit}</code>`,
    contents: [group("Start", start), group("Operations", described), group("Guide", subjects)].join("\n"),
    operations: rows.join("\n"),
    guide: [...start, ...described, ...subjects]
      .map(toSections)
      .join("\n")
      .replaceAll(/<(h[23]|strong) id="(.+?)"(.*?)>(.+?)<\/\1>/g, '<$1 id="$2"$3><a href="#$2">$4</a></$1>')
      .replaceAll(LONG_CODE, '<code class="long">$1</code>')
      // The keyboard scrolls what has the focus.
      .replaceAll(/<pre><code(?= class="language-(?!json))/g, '$& tabindex="0"'),
  };
}

/** The examples stand beside the text before them: a part of the page with several of them becomes several sections. */
function toSections(html: string): string {
  const pieces = html.replaceAll(EXAMPLE, `<div class="beside">\n$&</div>\n${SPLIT}`).split(SPLIT);
  const last = pieces.splice(-2).join(""); // with what follows the last example
  return [...pieces, last].map((section) => `<section>\n${section}</section>`).join("\n");
}

/** A group of the navigation: links to its parts of the page. */
function group(title: string, parts: string[]): string {
  const links = parts.map((html) => html.replace(/<h2 id="(.+?)".*?>(.+?)<\/h2>.*/s, '<li><a href="#$1">$2</a></li>'));
  return `<li>${title}<ul>${links.join("\n")}</ul></li>`;
}
