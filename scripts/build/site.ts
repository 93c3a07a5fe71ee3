// Writes the folder of static files: the page at /, which is the guide with the facts of the description in it, and
// openapi.json.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { Marked, type Token, type Tokens } from "marked";
import { description } from "../../src/description.ts";
import { printJson } from "../../src/values/json.ts";
import { referenceOf } from "./reference.ts";

const SITE = join(import.meta.dirname, "../../dist/site");
const SOURCES = join(import.meta.dirname, "../../src/site");
/** The languages of programs, which are tabs if they follow each other. */
const LANGUAGES: Record<string, string> = { sh: "curl", js: "JavaScript", python: "Python" };

// Not imported: its types would add those of the DOM, which contradict those of Workers.
const highlighter = createRequire(import.meta.url)("highlight.js/lib/common");
// It escapes quotes, which need it only in attributes, and would make up two of the page's 80 kB.
const toHtml = (code: string, language = "plaintext"): string =>
  highlighter.highlight(code, { language }).value.replaceAll("&quot;", '"');

const markdown: Marked = new Marked({
  renderer: {
    heading({ text, depth }) {
      const { id, title } = headingOf(text);
      return `<h${depth} id="${id}"><a href="#${id}">${title}</a></h${depth}>\n`;
    },
    code({ text, lang }) {
      // Programs scroll sideways, by the keyboard, too.
      if (lang) return `<pre><code class="language-${lang}" tabindex="0">${toHtml(`${text}\n`, lang)}</code></pre>\n`;
      // A response breaks between its members.
      return `<pre><code>${toHtml(`${text}\n`).replaceAll(/(?<=,)(?=["{])/g, "<wbr>")}</code></pre>\n`;
    },
  },
});

/** Writes only what differs, because two builds may do so at the same moment. */
export function buildSite(): void {
  const site = new Map(readdirSync(SOURCES).map((name) => [name, readFileSync(join(SOURCES, name))]));
  site.set("openapi.json", Buffer.from(`${printJson(description, 2)}\n`));
  const parts = pageParts(String(site.get("guide.md")));
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
function pageParts(guide: string): Record<string, string> {
  const { title, version, summary } = description.info;
  const contents: string[] = [];
  const sections: Token[][] = [];
  for (const token of markdown.lexer(guide.replaceAll(/<!-- (\w+) -->/g, (_, name) => referenceOf(name)))) {
    if (isHeading(token, 1)) contents.push(`<li><strong>${token.text}</strong></li>`);
    else if (isHeading(token, 2)) {
      const { id, title } = headingOf(token.text);
      contents.push(`<li><a href="#${id}">${title}</a></li>`);
      sections.push([token]);
    } else if (token.type !== "space") sections.at(-1)?.push(token);
  }
  return {
    title,
    summary,
    version,
    localKey: parseEnv(readFileSync(join(SOURCES, "../../.dev.vars.example"), "utf8"))["API_KEY"] ?? "",
    contents: contents.join("\n"),
    sections: sections.map(sectionOf).join("\n"),
  };
}

/** Text up to the first subheading, code with each sentence before it that ends in a colon, and the other text. */
function sectionOf(tokens: Token[], number: number): string {
  const [before, code, after]: [Token[], Token[], Token[]] = [[], [], []];
  let text = before;
  for (const token of tokens) {
    if (isHeading(token, 3)) text = after;
    const isCode = token.type === "code";
    if (isCode && text.at(-1)?.raw.trimEnd().endsWith(":")) code.push(...text.splice(-1));
    (isCode ? code : text).push(token);
  }
  const html = [inDiv("text", htmlOf(before)), inDiv("code", codeOf(number, code)), inDiv("text", htmlOf(after))];
  return `<section>\n${html.join("")}</section>`;
}

const inDiv = (name: string, html: string) => html && `<div class="${name}">\n${html}</div>\n`;
const htmlOf = (tokens: Token[]): string => markdown.parser(tokens);
const isHeading = (token: Token, depth: number): token is Tokens.Heading =>
  token.type === "heading" && token["depth"] === depth;

/** Programs that follow each other are tabs, of which the browser keeps one open, because they have the same `name`. */
function codeOf(section: number, tokens: Token[]): string {
  const languageOf = (token?: Token) => (token?.type === "code" ? LANGUAGES[token["lang"]] : undefined);
  const groups: Token[][] = [];
  for (const token of tokens) {
    const group = groups.at(-1);
    if (group && languageOf(token) && languageOf(group.at(-1))) group.push(token);
    else groups.push([token]);
  }
  const html = groups.map((group, i) => {
    if (group.length === 1) return htmlOf(group);
    const tabs = group.map((program, j) => {
      const attributes = `name="example-${section}-${i}"${j === 0 ? " open" : ""}`;
      return `<details ${attributes}><summary>${languageOf(program)}</summary>\n${htmlOf([program])}</details>\n`;
    });
    return `<div class="tabs">\n${tabs.join("")}</div>\n`;
  });
  return html.join("");
}

/** A heading as HTML, and its fragment: what stands in {#…}, or the heading itself, as on GitHub. */
function headingOf(text: string) {
  const [, title = "", fragment] = /^(.*?)(?: \{#(.+)\})?$/.exec(text) ?? [];
  const id = fragment ?? title.toLowerCase().match(/\w+/g)?.join("-");
  return { id, title: markdown.parseInline(title, { async: false }) };
}
