// The static site over HTTP, and how a program discovers the description.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describedOperations } from "../conformance.ts";
import { send } from "./send.ts";
import { KEY, ORIGIN } from "./service.ts";

describe("the site", () => {
  it("serves the exact description to any origin, with the guide as its introduction", async () => {
    const { status, headers, text } = await send(`${ORIGIN}/openapi.json`);
    expect(status).toBe(200);
    expect(headers.get("Content-Type")).toBe("application/json");
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    const guide = readFileSync("src/site/guide.md", "utf8").trim();
    expect(text.trim()).toBe(printJson({ ...description, info: { ...description.info, description: guide } }, 2));
    expect(text).toMatch(/"minimum": -9223372036854775808,\s+"maximum": 9223372036854775807/);
  });

  it("serves the API reference with a strict policy that allows only its own origin", async () => {
    const { status, headers, text } = await send(`${ORIGIN}/`);
    expect(status).toBe(200);
    expect(headers.get("Content-Type")).toBe("text/html; charset=utf-8");
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    const policy = headers.get("Content-Security-Policy")?.split("; ") ?? [];
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy.filter((directive) => /unsafe|http|\*/.test(directive))).toEqual([
      "style-src 'self' 'unsafe-inline'",
    ]);
    expect(text).not.toMatch(/(src|href)="(?!\/|data:,)/);
  });

  it.each(describedOperations)("lists $method $path in the HTML itself", async ({ method, path }) => {
    expect((await send(`${ORIGIN}/`)).text).toContain(`<code>${method} /v1${path}</code>`);
  });

  it("lets browsers keep the parts of the API reference that never change", async () => {
    const { text } = await send(`${ORIGIN}/scalar/standalone.esm.js`);
    const [, chunk] = text.match(/"\.\/(chunks\/[^"]+\.js)"/) ?? [];
    const { status, headers } = await send(`${ORIGIN}/scalar/${chunk}`);
    expect(status).toBe(200);
    expect(headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
  });

  it.each(["/", "/openapi.json", "/.well-known/api-catalog"])(
    "responds to POST %s with 405 and Allow",
    async (path) => {
      const { status, headers } = await send(ORIGIN + path, { method: "POST" });
      expect(status).toBe(405);
      expect(headers.get("Allow")).toBe("GET, HEAD");
    },
  );

  it.each(["/v1", "/v1/", "/v1/openapi.json", "/v1/index.html", "/v1/reference.js"])(
    "leaves %s to the Worker, which requires the key",
    async (path) => {
      expect((await send(ORIGIN + path)).status).toBe(401);
      expect((await send(ORIGIN + path, { headers: KEY })).status).toBe(404);
    },
  );

  it.each(["/nothing", "/nothing.html", "/openapi.yaml", "/guide.md"])(
    "responds to %s with 404 and an Error body",
    async (path) => {
      const { status, text } = await send(ORIGIN + path);
      expect(status).toBe(404);
      expect(JSON.parse(text).code).toBe("not_found");
    },
  );
});

describe("discovery", () => {
  // RFC 8631 names the relations, RFC 9727 the catalog.
  it.each([
    ["/", '</openapi.json>; rel="service-desc"; type="application/json"'],
    ["/", '</.well-known/api-catalog>; rel="api-catalog"'],
    ["/openapi.json", '</>; rel="service-doc"; type="text/html"'],
    ["/openapi.json", '</.well-known/api-catalog>; rel="api-catalog"'],
    ["/.well-known/api-catalog", '</.well-known/api-catalog>; rel="api-catalog"'],
  ])("links %s to %s, for GET and HEAD", async (path, link) => {
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await send(ORIGIN + path, { method });
      expect(status).toBe(200);
      expect(headers.get("Link")?.split(", ")).toContain(link);
    }
  });

  it("lists the description and the documentation in its catalog, and both exist", async () => {
    const { headers, text } = await send(`${ORIGIN}/.well-known/api-catalog`);
    expect(headers.get("Content-Type")).toBe(
      'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    );
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    const { linkset } = JSON.parse(text);
    const api = description.servers[0]?.url;
    expect(linkset[0]).toEqual({ anchor: "/.well-known/api-catalog", item: [{ href: api }] });
    const { anchor, ...relations } = linkset[1];
    expect(anchor).toBe(api);
    expect(Object.keys(relations)).toEqual(["service-desc", "service-doc"]);
    for (const [{ href, type }] of Object.values<[{ href: string; type: string }]>(relations)) {
      const { status, headers } = await send(ORIGIN + href);
      expect(status).toBe(200);
      expect(headers.get("Content-Type")).toMatch(type);
    }
  });
});
