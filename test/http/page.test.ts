// The API reference, in a real browser: what it loads, whether all can use it, and its request client.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { type Browser, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { petPaths } from "../../src/openapi/pets.ts";
import { type DescribedOperation, operations } from "../conformance.ts";
import { findChromium } from "./chromium.ts";

const ORIGIN = inject("origin");
/** The same service by a name that is not local. */
const ELSEWHERE = ORIGIN.replace("localhost", "store.example");
const FIRST_VIEW = 2 ** 20; // bytes
/** Milliseconds that axe and a browser may take for everything that the page has. */
const WHOLE_PAGE = 240_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const CHROMIUM = findChromium(process.env["CHROMIUM"]);
const SKIPPED = CHROMIUM ? "" : " (SKIPPED: no Chromium found; install it, or set CHROMIUM to its path)";

it("is told when CHROMIUM is no file", () => {
  expect(() => findChromium("/nowhere/chromium")).toThrow("CHROMIUM is /nowhere/chromium");
});

const cases = [1280, 390].flatMap((width) => (["light", "dark"] as const).map((scheme) => ({ width, scheme })));

describe.skipIf(SKIPPED)(`the page, in Chromium${SKIPPED}`, () => {
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

  interface Opened {
    page: Page;
    /** Whatever the page complains about or asks of another origin. */
    complaints: string[];
    /** Bytes that have been loaded, compressed. */
    loaded(): Promise<number>;
  }

  async function open({ width = 1280, scheme = "light" as "light" | "dark", origin = ORIGIN } = {}): Promise<Opened> {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
    const complaints: string[] = [];
    const sizes: Promise<number>[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      if (!/^data:/.test(request.url()) && new URL(request.url()).origin !== origin) complaints.push(request.url());
    });
    page.on("response", (response) => sizes.push(response.body().then((body) => gzipSync(body).length)));
    await page.goto(origin);
    await page.waitForSelector("h1:has-text('Animal store') >> visible=true");
    await page.waitForSelector("#summary", { state: "detached" });
    return { page, complaints, loaded: async () => (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) };
  }

  /** The operation's part of the page, scrolled into view: the page draws what comes into view. */
  async function show(page: Page, { method, path }: DescribedOperation): Promise<Locator> {
    await page.evaluate(`location.assign("#tag/pets/${method}/${path.slice(1)}")`);
    const section = page.locator(`section[id$="/${method}${path}"]`);
    await section.getByRole("button", { name: /^Test Request/ }).waitFor();
    return section;
  }

  async function openClient(page: Page, operation: DescribedOperation): Promise<Locator> {
    await (await show(page, operation)).getByRole("button", { name: /^Test Request/ }).click();
    const client = page.getByRole("dialog", { name: "API Client" });
    await client.getByRole("button", { name: /^Send/ }).first().waitFor();
    return client;
  }

  /** What WCAG 2.1 AA finds wrong, a line each. */
  async function faults(page: Page): Promise<string[]> {
    // What is still fading in has not its own colours yet.
    await page.evaluate("Promise.allSettled(document.getAnimations().map(({ finished }) => finished))");
    await page.evaluate(AXE);
    return page.evaluate(`axe
      .run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })
      .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
  }

  const overflow = (page: Page) => page.evaluate("document.documentElement.scrollWidth - window.innerWidth");

  it("loads at most 1 MiB to the first view", async () => {
    const { loaded } = await open();
    expect(await loaded()).toBeLessThanOrEqual(FIRST_VIEW);
  });

  it.each(cases)("can be read before its script has run, at $width pixels, $scheme", async ({ width, scheme }) => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
    await page.route("**/page.js", (route) => route.abort());
    await page.goto(ORIGIN);
    const text = await page.innerText("body");
    expect(text).toContain(description.info.title);
    for (const { method, path } of operations) expect(text).toContain(`${method} /v1${path}`);
    expect(await faults(page)).toEqual([]);
    expect(await overflow(page)).toBeLessThanOrEqual(0);
  });

  it.each(cases)(
    "can be used by all, at $width pixels, $scheme",
    async (view) => {
      const { page, complaints } = await open(view);
      for (const fold of await page.locator("summary").all()) await fold.click();
      for (const operation of operations) {
        const section = await show(page, operation);
        for (const response of await section.locator("button[id*='.responses.']").all())
          await response.dispatchEvent("click");
      }
      expect(await faults(page)).toEqual([]);
      expect(await overflow(page)).toBeLessThanOrEqual(0);
      for (const operation of operations) {
        await openClient(page, operation);
        expect(await faults(page)).toEqual([]);
        expect(await overflow(page)).toBeLessThanOrEqual(0);
        await page.keyboard.press("Escape");
      }
      expect(complaints).toEqual([]);
    },
    WHOLE_PAGE,
  );

  const operation = (id: string): DescribedOperation => {
    const found = operations.find(({ operationId }) => operationId === id);
    if (!found) throw new Error(`${id} is not described`);
    return found;
  };

  /** Sends what the request client holds, and gives the answer as it is shown: the status, and the body. */
  async function answer(client: Locator): Promise<{ status: string; body: string }> {
    await client.getByRole("button", { name: /^Send/ }).first().click();
    const response = client.locator("section[aria-label=Response]");
    await response.locator(".cm-content").waitFor();
    return { status: await response.innerText(), body: await response.locator(".cm-content").innerText() };
  }

  const fill = (client: Locator, parameter: string, value: string) =>
    client.locator("tr", { hasText: parameter }).locator("[contenteditable=true]").last().fill(value);

  it("creates, lists and gets, to the last digit, with the key that a local service has", async () => {
    const { page, complaints } = await open();
    const name = `Browser ${Date.now()}`;
    const creating = await openClient(page, operation("createPet"));
    await creating.locator(".cm-content").fill(`{"name":"${name}","categoryId":9223372036854775807}`);
    const created = await answer(creating);
    expect(created.status).toContain("201");
    expect(created.body).toContain(`"name": "${name}"`);
    expect(created.body).toContain('"categoryId": 9223372036854775807');
    const [, id = ""] = created.body.match(/"id": (\d+)/) ?? [];
    await page.keyboard.press("Escape");

    const listing = await openClient(page, operation("listPets"));
    await fill(listing, "after", String(Number(id) - 1));
    const listed = await answer(listing);
    expect(listed.status).toContain("200");
    expect(listed.body).toContain(`"name": "${name}"`);
    await page.keyboard.press("Escape");

    const getting = await openClient(page, operation("getPet"));
    await fill(getting, "petId", id);
    const got = await answer(getting);
    expect(got.status).toContain("200");
    expect(got.body).toContain('"categoryId": 9223372036854775807');
    expect(complaints).toEqual([]);
  });

  it("sends the parameters that were chosen, and no others", async () => {
    const { page } = await open();
    const client = await openClient(page, operation("listPets"));
    const query = async () => {
      const request = page.waitForRequest(/\/v1\//);
      await answer(client);
      return new URL((await request).url()).search;
    };
    expect(await query()).toBe("");
    await fill(client, "limit", "2");
    await client.locator("tr", { hasText: "status" }).locator("td").last().getByRole("button").first().click();
    await page.getByRole("menuitem", { name: "sold" }).click();
    expect(await query()).toBe("?limit=2&status=sold");
  });

  it("gets an animal as it comes", async () => {
    const { page } = await open();
    const client = await openClient(page, operation("getPet"));
    const request = page.waitForRequest(/\/v1\//);
    await answer(client);
    expect(new URL((await request).url()).pathname).toMatch(/^\/v1\/pets\/\d+$/);
  });

  it("offers no form for a body, which would round an int64", async () => {
    const { page } = await open();
    const client = await openClient(page, operation("createPet"));
    expect(await client.getByText("Form", { exact: true }).isVisible()).toBe(false);
  });

  it("keeps to the width of a narrow screen, and brings the response into view", async () => {
    const { page } = await open({ width: 390 });
    const client = await openClient(page, operation("createPet"));
    await client.locator(".cm-content").fill(JSON.stringify({ name: "Rex ".repeat(30), categoryId: 7 }));
    await answer(client);
    const dialog = "document.querySelector('.scalar-client[role=dialog]')";
    expect(await page.evaluate(`${dialog}.scrollWidth - ${dialog}.clientWidth`)).toBeLessThanOrEqual(0);
    const body = client.locator("section[aria-label=Response] .cm-content");
    const bottom = async () => (await body.boundingBox().then((box) => box && box.y + box.height)) ?? Infinity;
    await expect.poll(bottom).toBeLessThanOrEqual(900);
  });

  it("creates one animal after the other, as it comes", async () => {
    const { page } = await open();
    const client = await openClient(page, operation("createPet"));
    const ids = [];
    for (let animal = 0; animal < 2; animal += 1) {
      const request = page.waitForResponse(/\/v1\//);
      expect((await answer(client)).status).toContain("201");
      ids.push((await (await request).json()).id);
    }
    expect(new Set(ids).size).toBe(2);
  });

  it("names its own address elsewhere, knows no key there, and shows the refusal", async () => {
    const { page } = await open({ origin: ELSEWHERE });
    const setting = page.locator("pre", { hasText: "export" });
    expect((await setting.innerText()).trim()).toBe(`export ANIMAL_STORE=${ELSEWHERE}/v1\nexport API_KEY='<your key>'`);
    const client = await openClient(page, operation("listPets"));
    const { status, body } = await answer(client);
    expect(status).toContain("401");
    expect(body).toContain('"unauthorized"');
  });

  it("strikes a deprecated operation through", async () => {
    const { page } = await open();
    const summary = JSON.stringify(petPaths["/pets/{petId}"].get.summary);
    // Scalar may put another element in its place until the page is at rest.
    const line = `getComputedStyle(
      [...document.querySelectorAll("a *")].findLast(({ textContent }) => textContent === ${summary}),
    ).textDecorationLine`;
    await expect.poll(() => page.evaluate(line), { timeout: 10_000 }).toBe("line-through");
  });
});
