// The API reference, in a real browser.

import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import description from "../../dist/site/openapi.json" with { type: "json" };
import { KEY } from "./dev-server.ts";
import { send } from "./send.ts";

const ORIGIN = inject("origin");
const CHROMIUM = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => path && existsSync(path));

describe("the site", () => {
  it("serves the description, to any origin", async () => {
    const { status, headers, text } = await send(`${ORIGIN}/openapi.json`);
    expect(status).toBe(200);
    expect(headers.get("Content-Type")).toBe("application/json");
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    expect(JSON.parse(text)).toEqual(description);
    expect(text.match(/"minimum": -9223372036854775808,\s+"maximum": 9223372036854775807/g)?.length).toBe(5);
  });

  it("serves the page with a strict policy, all from its own origin", async () => {
    const { status, headers, text } = await send(`${ORIGIN}/`);
    expect(status).toBe(200);
    expect(headers.get("Content-Type")).toBe("text/html; charset=utf-8");
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    const policy = headers.get("Content-Security-Policy")?.split("; ");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy?.join()).not.toMatch(/unsafe|http|\*/);
    expect(text).not.toMatch(/(src|href)="(?!\/|data:,)/);
  });

  it.each(["/", "/openapi.json"])("refuses to POST to %s, with Allow", async (path) => {
    const { status, headers } = await send(ORIGIN + path, { method: "POST" });
    expect(status).toBe(405);
    expect(headers.get("Allow")).toBe("GET, HEAD");
  });

  it.each(["/v1", "/v1/", "/v1/openapi.json", "/v1/index.html", "/v1/page.js"])(
    "leaves %s to the Worker, which asks for the key",
    async (path) => {
      expect((await send(ORIGIN + path)).status).toBe(401);
      expect((await send(ORIGIN + path, { headers: KEY })).status).toBe(404);
    },
  );

  it.each(["/nothing", "/nothing.html", "/openapi.yaml"])("answers 404 with an Error body on %s", async (path) => {
    const { status, text } = await send(ORIGIN + path);
    expect(status).toBe(404);
    expect(JSON.parse(text).code).toBe("not_found");
  });
});

const SKIPPED = CHROMIUM ? "" : " (SKIPPED: no Chromium found; install it, or set CHROMIUM to its path)";

describe.skipIf(SKIPPED)(`the page, in Chromium${SKIPPED}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: String(CHROMIUM),
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
    });
  });
  afterAll(() => browser.close());

  /** Opens the page at a width in pixels; collects whatever it complains about or asks of another origin. */
  async function open(width: number): Promise<{ page: Page; complaints: string[] }> {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    const complaints: string[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== ORIGIN) complaints.push(request.url());
    });
    await page.goto(ORIGIN);
    await page.waitForSelector(".opblock");
    return { page, complaints };
  }

  async function authorize(page: Page): Promise<void> {
    await page.click("button.authorize");
    await page.fill(".auth-container input", "local-key");
    await page.click(".auth-btn-wrapper .authorize");
    await page.click(".auth-btn-wrapper .btn-done");
  }

  /** Executes an operation by "Try it out", and gives its answer as the page shows it. */
  async function execute(page: Page, operation: string, fill: Record<string, string> = {}): Promise<string> {
    const block = `#operations-pets-${operation}`;
    await page.click(`${block} .opblock-summary-control`);
    for (const [field, value] of Object.entries(fill)) await page.fill(`${block} ${field}`, value);
    await page.click(`${block} .execute`);
    await page.waitForSelector(`${block} .live-responses-table .response-col_description`);
    return page.innerText(`${block} .live-responses-table`);
  }

  it.each([390, 1280])("shows all operations, the deprecated one with its date, at %d pixels", async (width) => {
    const { page, complaints } = await open(width);
    expect(await page.locator(".opblock").count()).toBe(3);
    expect(await page.innerText(".opblock-deprecated")).toContain("until 5 December 2030");
    expect(
      await page.locator(".opblock-deprecated s, .opblock-deprecated .opblock-summary-path__deprecated").count(),
    ).toBe(1);
    for (const operation of ["listPets", "createPet", "getPet"]) {
      await page.click(`#operations-pets-${operation} .opblock-summary-control`);
      await page.waitForSelector(`#operations-pets-${operation} .responses-table`);
    }
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
    expect(complaints).toEqual([]);
  });

  it("authorizes, creates, lists and gets, to the last digit", async () => {
    const { page, complaints } = await open(1280);
    await authorize(page);
    const name = `Browser ${Date.now()}`;
    const created = await execute(page, "createPet", {
      textarea: `{"name":"${name}","categoryId":9223372036854775807}`,
    });
    expect(created).toMatch(/^Code\s+Details\s+201/);
    expect(created).toContain(`"name": "${name}"`);
    expect(created).toContain('"categoryId": 9223372036854775807');
    const [, id = ""] = created.match(/"id": (\d+)/) ?? [];
    const listed = await execute(page, "listPets", { 'input[placeholder="after"]': String(Number(id) - 1) });
    expect(listed).toMatch(/^Code\s+Details\s+200/);
    expect(listed).toContain(`"name": "${name}"`);
    const got = await execute(page, "getPet", { input: id });
    expect(got).toMatch(/^Code\s+Details\s+200/);
    expect(got).toContain('"categoryId": 9223372036854775807');
    expect(complaints).toEqual([]);
  });

  it("creates one animal after the other, as it comes", async () => {
    const { page } = await open(1280);
    await authorize(page);
    expect(await execute(page, "createPet")).toMatch(/^Code\s+Details\s+201/);
    await page.fill("#operations-pets-createPet textarea", '{"name":"Another","categoryId":1}');
    await page.click("#operations-pets-createPet .execute");
    await page.waitForSelector('#operations-pets-createPet .live-responses-table :text("Another")');
    expect(await page.innerText("#operations-pets-createPet .live-responses-table")).toMatch(/^Code\s+Details\s+201/);
  });

  it("shows a refusal", async () => {
    const { page } = await open(1280);
    expect(await execute(page, "listPets")).toContain('"unauthorized"');
  });
});
