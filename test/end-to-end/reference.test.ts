// The API reference in a real browser: what callers rely on, not Scalar's own features.

import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { type DescribedOperation, described, describedOperations } from "../conformance.ts";
import { ELSEWHERE, expectAccessible, openPage, SKIPPED, VIEWS } from "./chromium.ts";
import { send } from "./send.ts";
import { API_KEY, IS_DEPLOYED, KEY, LOCAL_ONLY, ORIGIN } from "./service.ts";

const WCAG_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
const CLIENT = ".scalar-client[role=dialog]";
const SOON = { timeout: 20_000 };

const idOf = ({ tags, method, path }: DescribedOperation) => `tag/${tags[0]}/${method}${path}`;
const sectionOf = (page: Page, operation: DescribedOperation) => page.locator(`section[id$="/${idOf(operation)}"]`);

/** Opens the API reference at an operation, as the guide links to it. */
async function openAt(operation: DescribedOperation, view: BrowserContextOptions = {}, origin = ORIGIN) {
  const { page, complaints } = await openPage(`${origin}/reference#${idOf(operation)}`, view);
  const section = sectionOf(page, operation);
  await expect.poll(() => section.evaluate((s) => Math.abs(s.getBoundingClientRect().top)), SOON).toBeLessThan(100);
  return { page, complaints, section };
}

/** Opens the request client of an operation. */
async function openClient(section: Locator): Promise<Locator> {
  await section.getByRole("button", { name: /^Test Request/ }).click();
  const client = section.page().locator(CLIENT);
  await client.getByRole("button", { name: /^Send/ }).first().waitFor();
  if (IS_DEPLOYED) await client.getByPlaceholder("Token").fill(API_KEY);
  return client;
}

/** Sends what the request client contains. Returns what it shows: the status and the body, without white space. */
async function exchange(client: Locator): Promise<string> {
  const received = client.page().waitForResponse(/\/v1\//);
  await client.getByRole("button", { name: /^Send/ }).first().click();
  // Of a long body, the client renders only what is in view.
  const beginning = (await (await received).text()).replaceAll(/\s/g, "").slice(0, 80);
  const response = client.locator("section[aria-label=Response]");
  const shown = async () => (await response.innerText()).replaceAll(/\d+\n|\s/g, "");
  await expect.poll(shown, SOON).toContain(beginning);
  return shown();
}

describe.skipIf(SKIPPED)(`the API reference, in Chromium${SKIPPED}`, () => {
  describe.each(VIEWS)("$viewport.width pixels wide, $colorScheme", (view) => {
    it("shows every operation to everyone, and sends its example", async () => {
      const { page, complaints } = await openAt(described("getPet"), view);
      for (const operation of describedOperations) {
        const section = sectionOf(page, operation);
        for (const part of await section.locator("button[id*='.responses.']").all()) await part.dispatchEvent("click");
        await expect.poll(() => section.locator("[id*='.responses.'][aria-expanded=false]").count()).toBe(0);
        expect(await section.innerText()).not.toContain("9223372036854776000"); // the greatest int64, rounded
      }
      await expectAccessible(page, "html", WCAG_AA);
      for (const operation of describedOperations) {
        const client = await openClient(sectionOf(page, operation));
        await expectAccessible(page, CLIENT, WCAG_AA);
        // 404 if the example of a path does not exist, 410 once it is removed
        expect(await exchange(client)).toMatch(/20[014]|404|410/);
        await expectAccessible(page, CLIENT, WCAG_AA);
        await client.getByRole("button", { name: "Close Client" }).first().click();
      }
      expect(complaints).toEqual([]);
    });

    it("shows the whole link to the next page", async () => {
      const headers = { ...KEY, "Content-Type": "application/json" };
      const request = { method: "POST", headers, body: '{"name":"Rex","categoryId":7}' };
      for (let animals = 0; animals < 2; animals++) await send(`${ORIGIN}/v1/pets`, request);
      const client = await openClient((await openAt(described("listPets"), view)).section);
      await client.locator("tr", { hasText: "limit" }).locator("[contenteditable=true]").last().fill("1");
      await exchange(client);
      await client.locator("button", { hasText: "Response Headers" }).dispatchEvent("click");
      const table = client.locator("div:has(> table)", { hasText: 'rel="next"' });
      expect(await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
      const value = table.locator("td", { hasText: 'rel="next"' });
      expect(await value.evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)).toBe(0);
    });
  });

  it("creates an animal to the last digit, and one from the example that it generates", async () => {
    const client = await openClient((await openAt(described("createPet"))).section);
    await client.locator(".cm-content").first().fill('{"name":"Rex","categoryId":9223372036854775807}');
    expect(await exchange(client)).toMatch(/201Created.*"categoryId":9223372036854775807,/);
    const rounding = client.getByText(/^(Form|Code Snippet)/);
    expect(await rounding.filter({ visible: true }).count()).toBe(0);
    await client.getByRole("button", { name: "Generate example from schema" }).click();
    expect(await exchange(client)).toMatch(/201Created.*"name":"Rex","categoryId":7,"status":"available"/);
  });

  it.skipIf(IS_DEPLOYED)(`does not know the key of a service that is not local${LOCAL_ONLY}`, async () => {
    const { section } = await openAt(described("listPets"), {}, ELSEWHERE);
    expect(await exchange(await openClient(section))).toContain("401Unauthorized");
  });

  it("offers no code that sends credentials: browsers reject it, because every origin may call the service", async () => {
    const { page, section } = await openAt(described("createPet"));
    await section.getByRole("button", { name: "Shell Curl" }).click();
    const clients = await page.getByRole("option").allInnerTexts();
    expect(clients).toContain("Fetch");
    expect(clients).not.toContain("XHR");
  });
});
