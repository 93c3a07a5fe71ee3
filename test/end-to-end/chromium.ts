// The pages of the site in a real browser, which starts and ends with the test file that imports this.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type BrowserContextOptions, chromium, type Page, type Response } from "playwright-core";
import { afterAll, expect, onTestFinished } from "vitest";
import { ORIGIN } from "./service.ts";

// The headless shell first, because it starts and draws faster.
const USUAL_PLACES = [
  ...["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"],
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
const executablePath = process.env["CHROMIUM"] || USUAL_PLACES.find((path) => existsSync(path));
const args = ["--no-sandbox", "--in-process-gpu", "--host-resolver-rules=MAP store.example localhost"];
const browser = executablePath ? await chromium.launch({ executablePath, args }) : undefined;
afterAll(() => browser?.close());

/** Why tests are skipped: at the end of their titles. */
export const NO_CHROMIUM = browser ? "" : " (SKIPPED: Chromium was not found: install it, or set CHROMIUM to its path)";

/** The same service at a host that is not local. */
export const ELSEWHERE = ORIGIN.replace(/localhost|127\.0\.0\.1/, "store.example");

/** Opens a page. Also returns what it loads, and its warnings and errors: now and later. */
export async function openPage(url: string, options: BrowserContextOptions = {}) {
  const page = (await browser?.newPage(options)) ?? expect.fail("Chromium was not found.");
  onTestFinished(() => page.close());
  const complaints: string[] = [];
  const responses: Response[] = [];
  page.on("response", (response) => responses.push(response));
  page.on("pageerror", ({ message }) => complaints.push(message));
  page.on("console", (message) => {
    // Chromium also reports the statuses of requests to the service.
    const isFromPage = !message.location().url.includes("/v1/");
    if (isFromPage && ["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints, responses };
}

/** Asserts that axe finds nothing wrong, and that nothing is cut off, except for code and fields, which scroll. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const violations = await page.evaluate(`axe
    .run()
    .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`);
  expect(violations).toEqual([]);
  const wide = `[...document.querySelectorAll("html, main :not(input)")]
    .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX !== "auto")
    .map(({ outerHTML }) => outerHTML)`;
  expect(await page.evaluate(wide)).toEqual([]);
}
