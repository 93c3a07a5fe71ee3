// The API reference in a real browser: what it loads, its accessibility, and its request client. Each view opens it only once,
// because opening it takes longer than most of the tests.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { type Browser, chromium, type Locator, type Page, type Response } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { type DescribedOperation, described, describedOperations } from "../conformance.ts";
import { findChromium } from "./chromium.ts";
import { API_KEY, IS_DEPLOYED, IS_REMOVED, LOCAL_ONLY, ORIGIN, UNTIL_REMOVAL } from "./service.ts";

/** The same service at a host that is not local. */
const ELSEWHERE = ORIGIN.replace("localhost", "store.example");
const HEIGHT = 900; // pixels
const PATIENCE = 20_000; // milliseconds that the browser may take for one step
const VIEWS = [
  { width: 1280, colorScheme: "light" },
  { width: 390, colorScheme: "dark" },
] as const;
type View = (typeof VIEWS)[number];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const GUIDE = readFileSync("src/site/guide.md", "utf8");
const CLIENT = ".scalar-client[role=dialog]";
const RESPONSE = `${CLIENT} section[aria-label=Response]`;

const CHROMIUM = findChromium(process.env["CHROMIUM"]);
const SKIPPED = CHROMIUM ? "" : " (SKIPPED: Chromium was not found; install it, or set CHROMIUM to its path)";

describe.skipIf(SKIPPED)(`the API reference, in Chromium${SKIPPED}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: String(CHROMIUM),
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--host-resolver-rules=MAP store.example localhost",
      ],
    });
  });
  afterAll(() => browser.close());

  async function newPage({ width, colorScheme }: View): Promise<Page> {
    const page = await browser.newPage({ viewport: { width, height: HEIGHT }, colorScheme });
    page.setDefaultTimeout(PATIENCE);
    await page.addInitScript(AXE);
    return page;
  }

  /** Waits until the API reference is usable. It knows only the key of a local service. */
  async function finishLoading(page: Page): Promise<void> {
    await page.waitForSelector("#summary", { state: "detached" });
    if (IS_DEPLOYED) await page.getByPlaceholder("Token").fill(API_KEY);
  }

  async function open(view: View, origin = ORIGIN) {
    const page = await newPage(view);
    /** Warnings, errors and requests to other origins. */
    const complaints: string[] = [];
    const responses: Response[] = [];
    page.on("console", (message) => {
      // Chromium reports 404 and 410 too, which the example of getPet may get.
      const isFromSite = !message.location().url.startsWith(`${origin}/v1/`);
      if (isFromSite && ["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== origin) complaints.push(request.url());
    });
    page.on("response", (response) => responses.push(response));
    await page.goto(origin);
    await page.waitForSelector("h1:has-text('Animal store') >> visible=true");
    await finishLoading(page);
    /** The size of everything that was loaded, compressed, in bytes. */
    const loaded = async () => {
      const bodies = await Promise.all(responses.map((response) => response.body()));
      return bodies.reduce((sum, body) => sum + gzipSync(body).length, 0);
    };
    return { page, complaints, loaded };
  }

  const sectionOf = ({ method, path }: DescribedOperation) => `section[id$="/${method}${path}"]`;

  /** Scrolls to an operation: only what is in view is rendered. */
  async function show(page: Page, operation: DescribedOperation): Promise<Locator> {
    await page.evaluate(`location.assign("#tag/${operation.tags[0]}/${operation.method}/${operation.path.slice(1)}")`);
    const section = page.locator(sectionOf(operation));
    await section.getByRole("button", { name: /^Test Request/ }).waitFor();
    return section;
  }

  /** Opens the request client of an operation, uses it, and closes it. */
  async function inClient<T>(
    page: Page,
    operation: DescribedOperation,
    use: (client: Locator) => Promise<T>,
  ): Promise<T> {
    await (await show(page, operation)).getByRole("button", { name: /^Test Request/ }).click();
    const client = page.getByRole("dialog", { name: "API Client" });
    await client.getByRole("button", { name: /^Send/ }).first().waitFor();
    // While the client shows that it is sending, Escape ends only that.
    const isOpen = () => page.keyboard.press("Escape").then(() => client.isVisible());
    return use(client).finally(() => expect.poll(isOpen, { timeout: PATIENCE }).toBe(false));
  }

  /** Asserts WCAG 2.1 AA for what the selector finds, and that nothing is wider than the window. */
  async function expectAccessible(page: Page, selector = "html"): Promise<void> {
    // Under the mouse, a copy button has its label twice. While an element fades in, its colors are not final.
    await page.mouse.move(0, 0);
    await page.evaluate("Promise.allSettled(document.getAnimations().map(({ finished }) => finished))");
    const violations = await page.evaluate(`axe
      .run(${JSON.stringify(selector)}, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })
      .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
    expect(violations).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")).toBeLessThanOrEqual(0);
  }

  interface Exchange {
    request: URL;
    /** As the client shows it. */
    status: string;
    /** As the client shows it. */
    body: string;
  }

  /** Sends what the request client contains, and waits until the response is shown. */
  async function exchange(page: Page, client: Locator): Promise<Exchange> {
    const received = page.waitForResponse(/\/v1\//);
    await client.getByRole("button", { name: /^Send/ }).first().click();
    const response = await received;
    const shown = page.locator(RESPONSE);
    const body = shown.locator(".cm-content");
    // Compared without the white space that the client adds. Of a long body, it renders only what is in view.
    const beginning = (text: string) => text.replaceAll(/\s/g, "").slice(0, 80);
    const bodyText = async () => (await body.allInnerTexts()).join();
    const expected = beginning(await response.text());
    await expect.poll(async () => beginning(await bodyText()), { timeout: PATIENCE }).toBe(expected);
    return { request: new URL(response.url()), status: await shown.innerText(), body: await bodyText() };
  }

  const fill = (client: Locator, parameter: string, value: string) =>
    client.locator("tr", { hasText: parameter }).locator("[contenteditable=true]").last().fill(value);

  const idOf = ({ body }: Exchange) => Number(/"id": (\d+)/.exec(body)?.[1]);

  describe.each(VIEWS)("at $width pixels, $colorScheme", (view) => {
    it("can be read before its script runs", async () => {
      const page = await newPage(view);
      await page.route("**/reference.js", (route) => route.abort());
      await page.goto(ORIGIN);
      const text = await page.innerText("body");
      expect(text).toContain(description.info.title);
      for (const { method, path } of describedOperations) expect(text).toContain(`${method} /v1${path}`);
      await expectAccessible(page);
      await page.close();
    });

    let opened: Awaited<ReturnType<typeof open>>;
    beforeAll(async () => {
      opened = await open(view);
    });
    afterAll(() => opened.page.close());

    it("loads at most 1 MiB for the first view", async () => {
      expect(await opened.loaded()).toBeLessThanOrEqual(2 ** 20);
    });

    it("shows the guide's examples in the chosen language, above their responses, without scrolling, and copies them", async () => {
      const { page } = opened;
      for (const language of ["Python", "curl", "JavaScript"]) {
        const tab = page.locator("summary", { hasText: language }).last();
        await tab.scrollIntoViewIfNeeded();
        const topOf = async (shown: Locator) => (await shown.boundingBox())?.y ?? NaN;
        const before = await topOf(tab);
        await tab.press("Enter");
        expect(Math.abs((await topOf(tab)) - before)).toBeLessThanOrEqual(1);
        expect(new Set(await page.locator("details[open] > summary").allInnerTexts())).toEqual(new Set([language]));
        const wide = `[...document.querySelectorAll("pre > code")].filter((code) => code.scrollWidth > code.clientWidth)`;
        expect(await page.evaluate(`${wide}.map(({ innerText }) => innerText)`)).toEqual([]);
        const response = page.locator("details ~ pre").first();
        expect(await topOf(page.locator("details[open] > pre").first())).toBeLessThan(await topOf(response));
      }
      expect(await page.locator("details ~ pre").getByRole("button").count()).toBe(0);
      expect(await page.getByText("Models", { exact: true }).count()).toBe(0);
      await expectAccessible(page);
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.locator("details[open]").last().getByRole("button", { name: "Copy" }).click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      expect(GUIDE).toContain(`\`\`\`js\n${await page.evaluate("navigator.clipboard.readText()")}\`\`\``);
      await page.reload();
      await finishLoading(page);
      expect(new Set(await page.locator("details[open] > summary").allInnerTexts())).toEqual(new Set(["JavaScript"]));
    });

    it.each(["retry", "int64", "key"])("finds the section of the guide about %s", async (topic) => {
      const { page } = opened;
      await page.keyboard.press("Control+k");
      await page.getByRole("search").getByRole("combobox").fill(topic);
      await page.getByRole("option", { name: "Heading:" }).click();
      await page.waitForURL(RegExp(`#description/.*${topic.slice(0, 4)}`)); // "retry" finds "retries".
    });

    it("follows Enter to the first result of a search, and a link of the guide to its section", async () => {
      const { page } = opened;
      await page.keyboard.press("Control+k");
      await page.getByRole("search").getByRole("combobox").fill("bookmarks");
      await page.getByRole("option", { name: "Heading: Bookmarks" }).waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL(/#description\/bookmarks$/);
      await page.locator(".markdown a", { hasText: "Idempotency" }).click();
      await page.waitForURL(/#description\/idempotency-and-retries$/);
    });

    it("offers only clients whose code runs as it is", async () => {
      const { page } = opened;
      const section = await show(page, described("createPet"));
      await section.getByRole("button", { name: "Shell Curl" }).click();
      expect(await page.getByRole("option").allInnerTexts()).toEqual(["Fetch", "Curl"]);
      await page.keyboard.press("Escape");
    });

    it.each(describedOperations)("shows $operationId to everyone", async (operation) => {
      const { page } = opened;
      const section = await show(page, operation);
      const responses = JSON.stringify(`${sectionOf(operation)} button[id*='.responses.']`);
      await page.evaluate(`for (const response of document.querySelectorAll(${responses})) response.click()`);
      await expect.poll(() => section.locator("[id*='.responses.'][aria-expanded=false]").count()).toBe(0);
      await expectAccessible(page, sectionOf(operation));

      const tabs = await section.getByRole("tab").allInnerTexts();
      expect(tabs.map((tab) => /\d+/.exec(tab)?.[0])).toEqual(Object.keys(operation.responses));
      const all = `[...document.querySelectorAll(${JSON.stringify(`${sectionOf(operation)} [role=tab]`)})]`;
      await page.evaluate(`${all}[0].scrollIntoView({ block: "center", behavior: "instant" })`);
      const covered = `${all}
        .filter((tab) => {
          const { left, right, top, height } = tab.getBoundingClientRect();
          return [left + 1, right - 1].some((x) => !tab.contains(document.elementFromPoint(x, top + height / 2)));
        })
        .map(({ innerText }) => innerText)`;
      expect(await page.evaluate(covered)).toEqual([]);

      const heading = `document.querySelector(${JSON.stringify(`${sectionOf(operation)} :is(h1, h2, h3)`)})`;
      expect(await page.evaluate(`getComputedStyle(${heading}).textDecorationLine`)).toBe(
        operation.deprecated ? "line-through" : "none",
      );
    });

    it.each(describedOperations)("lets everyone call $operationId, and sends only what was chosen", (operation) =>
      inClient(opened.page, operation, async (client) => {
        await expectAccessible(opened.page, CLIENT);
        const { request, status } = await exchange(opened.page, client);
        expect(request.pathname).toMatch(RegExp(`^/v1${operation.path.replaceAll(/\{\w+\}/g, "\\d+")}$`));
        expect(request.search).toBe("");
        const noise = client.getByText(/^(Selected Auth Type|Cookies|Query Parameters|Code Snippet)/);
        const hasQuery = operation.parameters.some((parameter) => parameter.in === "query");
        expect(await noise.filter({ visible: true }).count()).toBe(hasQuery ? 1 : 0);
        expect(status).toMatch(/20[014]|404|410/); // 404 if the example of a path does not exist, 410 once it is removed
        await expectAccessible(opened.page, RESPONSE);
      }),
    );

    it.skipIf(IS_REMOVED)(`creates, lists and gets an animal, to the last digit${UNTIL_REMOVAL}`, async () => {
      const { page } = opened;
      const name = `${"Rex ".repeat(30)}${Date.now()}`;
      const created = await inClient(page, described("createPet"), async (client) => {
        expect(await client.getByText("Form", { exact: true }).isVisible()).toBe(false);
        await client.locator(".cm-content").first().fill(`{"name":"${name}","categoryId":9223372036854775807}`);
        const first = await exchange(page, client);
        const dialog = `document.querySelector(${JSON.stringify(CLIENT)})`;
        expect(await page.evaluate(`${dialog}.scrollWidth - ${dialog}.clientWidth`)).toBeLessThanOrEqual(0);
        const body = page.locator(`${RESPONSE} .cm-content`);
        const bottom = async () => (await body.boundingBox().then((box) => box && box.y + box.height)) ?? Infinity;
        await expect.poll(bottom).toBeLessThanOrEqual(HEIGHT);
        // The next one is a different animal: no Idempotency-Key was filled in.
        expect(idOf(await exchange(page, client))).toBeGreaterThan(idOf(first));
        return first;
      });
      expect(created.status).toContain("201");
      expect(created.body).toContain(`"name": "${name}"`);
      expect(created.body).toContain('"categoryId": 9223372036854775807');

      const listed = await inClient(page, described("listPets"), async (client) => {
        await fill(client, "after", String(idOf(created) - 1));
        await fill(client, "limit", "1");
        await client.locator("tr", { hasText: "status" }).locator("td").last().getByRole("button").first().click();
        await page.getByRole("menuitem", { name: "available" }).click();
        return exchange(page, client);
      });
      expect(listed.request.search).toBe(`?limit=1&status=available&after=${idOf(created) - 1}`);
      expect(listed.status).toContain("200");
      expect(idOf(listed)).toBe(idOf(created));

      const got = await inClient(page, described("getPet"), async (client) => {
        await fill(client, "petId", String(idOf(created)));
        return exchange(page, client);
      });
      expect(got.status).toContain("200");
      expect(got.body).toBe(created.body);
    });

    it("does all of this without a warning and without a request to another origin", () => {
      expect(opened.complaints).toEqual([]);
    });
  });

  it.skipIf(IS_DEPLOYED)(`at an address that is not local, shows it, an error and no key${LOCAL_ONLY}`, async () => {
    const { page } = await open(VIEWS[0], ELSEWHERE);
    const settings = await page.locator("pre", { hasText: "export" }).innerText();
    expect(settings).toContain(`export ANIMAL_STORE=${ELSEWHERE}/v1\nexport API_KEY='<your key>'\n`);
    const { status, body } = await inClient(page, described("listPets"), (client) => exchange(page, client));
    expect(status).toContain("401");
    expect(body).toContain('"unauthorized"');
  });
});
