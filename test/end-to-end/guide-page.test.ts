// The guide as a page, in a real browser. That its examples run is tested in guide.test.ts.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { ELSEWHERE, expectAccessible, openPage, SKIPPED, VIEWS } from "./chromium.ts";
import { ORIGIN } from "./service.ts";

const GUIDE = readFileSync("src/site/guide.md", "utf8");
const PLACEHOLDERS = { address: "https://<your address>", key: "<your API key>" };

/** The languages of all examples that are visible. */
const shown = (page: Page) => page.locator("details:has(pre:visible) > summary:visible").allInnerTexts();
const all = (language: string) => Array.from(GUIDE.matchAll(/<summary>curl/g), () => language);

async function expectFilledIn(page: Page, { address, key }: typeof PLACEHOLDERS): Promise<void> {
  const code = (await page.locator("pre").allTextContents()).join();
  expect(code).toContain(`export ANIMAL_STORE='${address}/v1'\nexport API_KEY='${key}'\n`);
  expect(code).toContain(`Link: <${address}/v1/pets?limit=100&status=available&after=100>; rel="next"`);
}

describe.skipIf(SKIPPED)(`the guide, in Chromium${SKIPPED}`, () => {
  describe.each(VIEWS)("$viewport.width pixels wide", (view) => {
    it("is accessible in light, dark and print, where nothing is cut off, and loads at most 60 kB", async () => {
      const { page, complaints, responses } = await openPage(ORIGIN, view);
      for (const media of [{ colorScheme: "light" }, { colorScheme: "dark" }, { media: "print" }] as const) {
        await page.emulateMedia(media);
        await expectAccessible(page);
        const cut =
          "[...document.querySelectorAll('main *')].filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth)";
        expect(await page.evaluate(`${cut}.map(({ outerHTML }) => outerHTML)`)).toEqual([]);
      }
      expect(await shown(page)).toEqual(all("curl"));
      expect(await page.getByRole("button").count()).toBe(0);
      const sizes = await Promise.all(responses.map(async (response) => gzipSync(await response.body()).length));
      expect(sizes).toHaveLength(3);
      expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(60_000);
      expect(complaints).toEqual([]);
    });

    it.each(["JavaScript", "Python"])("shows and copies all examples in %s, even after a reload", async (language) => {
      const { page, complaints } = await openPage(ORIGIN, {
        ...view,
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const tab = page.locator("summary", { hasText: language }).last();
      await tab.scrollIntoViewIfNeeded();
      const top = async () => (await tab.boundingBox())?.y ?? NaN;
      const before = await top();
      await tab.press("Enter");
      expect(Math.abs((await top()) - before)).toBeLessThanOrEqual(1);
      expect(await shown(page)).toEqual(all(language));
      await page.reload();
      expect(await shown(page)).toEqual(all(language));
      await page.getByRole("button", { name: "Copy" }).last().click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      expect(GUIDE).toContain(`\n${await page.evaluate("navigator.clipboard.readText()")}\`\`\``);
      expect(complaints).toEqual([]);
    });
  });

  it.each([
    { origin: ELSEWHERE, key: PLACEHOLDERS.key },
    { origin: ORIGIN, key: ORIGIN === ELSEWHERE ? PLACEHOLDERS.key : "local-key" },
  ])("has, at $origin, this address and the key $key", async ({ origin, key }) => {
    await expectFilledIn((await openPage(origin)).page, { address: origin, key });
  });

  it("is complete without JavaScript: placeholders, and every example in every language", async () => {
    const { page } = await openPage(ORIGIN, { javaScriptEnabled: false });
    await expectFilledIn(page, PLACEHOLDERS);
    expect(await shown(page)).toEqual(all("curl"));
    for (const tab of await page.locator("summary", { hasText: "Python" }).all()) await tab.click();
    expect(await shown(page)).toEqual(all("Python"));
  });
});
