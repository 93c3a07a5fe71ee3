// Writes the folder of static files: the page at /, which has the guide and the operations, and openapi.json.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Marked } from "marked";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describeOperations, errorTable, operations, titleOf } from "./reference.ts";

const SITE = join(import.meta.dirname, "../../dist/site");
const SOURCES = join(import.meta.dirname, "../../src/site");
const OPERATIONS = "<!-- operations -->";
const ERRORS = "<!-- errors -->";
/** In Markdown. */
const block = (language: string) => `^\`\`\`${language}\n(?:(?!^\`\`\`).)*^\`\`\`\n+`;
/** Code, with each sentence that introduces some of it and ends in a colon. */
const EXAMPLE = RegExp(`((^[^\n]+:\n\n)?${block("\\w*")})+`, "gms");
const TABS = RegExp(`(${block("sh")})(${block("js")})(${block("python")})`, "gms");
/** In characters. Shorter inline code, such as the name of a header, does not break. */
const LONG = 30;

// Not imported: its types would add those of the DOM, which contradict those of Workers.
const highlighter = createRequire(import.meta.url)("highlight.js/lib/common");
const toHtml = (code: string, language = "plaintext"): string => highlighter.highlight(code, { language }).value;
const markdown: Marked = new Marked({
  renderer: {
    heading({ text, depth }) {
      const { id, title } = headingOf(text);
      const heading = `<h${depth} id="${id}"><a href="#${id}">${title}</a></h${depth}>\n`;
      return depth === 2 ? this.hr({ type: "hr", raw: "" }) + heading : heading;
    },
    hr: () => "</section>\n<section>\n",
    code({ text, lang }) {
      const program = `${text}\n`;
      if (lang && lang !== "json") {
        return `<pre><code class="language-${lang}">${toHtml(program, lang)}</code></pre>\n`;
      }
      // A response breaks between its members.
      const html = toHtml(program, lang || undefined).replaceAll(/(?<=,(<\/span>)?)(?=<span|&quot;|\{)/g, "<wbr>");
      return `<pre><code${lang && ' class="language-json"'}>${html}</code></pre>\n`;
    },
    codespan: ({ text }) => `<code${text.length < LONG ? "" : ' class="long"'}>${toHtml(text)}</code>`,
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
  const [start = "", subjects = ""] = guide.replace(ERRORS, errorTable).split(OPERATIONS);
  const groups = { Start: start, Operations: describeOperations(), Guide: subjects };
  const rows = operations.map(({ operationId, method, path, ...operation }) => {
    const link = titleOf(operation).replace(/^.+?(?= <mark>|$)/, `<a href="#${operationId}">$&</a>`);
    return `<tr><td>${link}</td><td><code>${method} ${path}</code></td></tr>`;
  });
  const examples = Object.values(groups).join("\n\n").replaceAll(EXAMPLE, '<div class="beside">\n\n$&</div>\n\n');
  return {
    title,
    summary,
    version,
    commit: commit && `, built from commit <code>${commit}</code>`,
    contents: Object.entries(groups)
      .map(([name, source]) => `<li>${name}<ul>${linksTo(source)}</ul></li>`)
      .join("\n"),
    operations: rows.join("\n"),
    guide: markdown.parse(examples.replaceAll(TABS, tabs), { async: false }),
  };
}

/** Links to the parts of the page. */
function linksTo(source: string): string {
  const headings = Array.from(source.matchAll(/^## (.+)$/gm), ([, text = ""]) => headingOf(text));
  return headings.map(({ id, title }) => `<li><a href="#${id}">${title}</a></li>`).join("\n");
}

/** A heading as HTML, and its fragment: what stands in {#…}, or the heading itself, as on GitHub. */
function headingOf(text: string) {
  const [, title = "", fragment] = /^(.*?)(?: \{#(.+)\})?$/.exec(text) ?? [];
  const id =
    fragment ??
    title
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-");
  return { id, title: markdown.parseInline(title, { async: false }) };
}

/** `name` is common to the tabs of an example, of which the browser keeps one open. */
function tabs(_: string, curl: string, javaScript: string, python: string, offset: number): string {
  const tab = ([title, program]: string[], i: number) =>
    `<details name="example-${offset}"${i === 0 ? " open" : ""}><summary>${title}</summary>\n\n${program}</details>`;
  const programs = Object.entries({ curl, JavaScript: javaScript, Python: python });
  return `<div class="tabs">\n\n${programs.map(tab).join("\n\n")}\n\n</div>\n\n`;
}
