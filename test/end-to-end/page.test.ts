// The page in a real browser. That its examples run is tested in guide.test.ts and site.test.ts.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import type { Page, Route } from "playwright-core";
import { describe, expect, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { printJson } from "../../src/values/json.ts";
import { describedOperations } from "../conformance.ts";
import { ELSEWHERE, expectAccessible, openPage, SKIPPED, VIEWS } from "./chromium.ts";
import { API_KEY, addAnimal, IS_DEPLOYED, ORIGIN } from "./service.ts";

const GUIDE = readFileSync("src/site/guide.md", "utf8");
const PLACEHOLDERS = { address: "https://<your address>", key: "<your API key>" };
const OPEN_FORMS = "for (const form of document.querySelectorAll('section > details')) form.open = true";
/** What precedes the value of each keyword of the description. */
const LABELS: Record<string, string> = {
  ...{ operationId: "", description: "", example: "" },
  ...{ minimum: "at least ", maximum: "at most ", pattern: "matches ", const: "always ", default: "default " },
};

/** The languages of all examples that are visible. */
const shown = (page: Page) => page.locator("details[name]:has(pre:visible) > summary:visible").allInnerTexts();
const all = (language: string) => Array.from(GUIDE.matchAll(/<summary>curl/g), () => language);

async function expectFilledIn(page: Page, { address, key }: typeof PLACEHOLDERS): Promise<void> {
  const code = (await page.locator("pre").allTextContents()).join();
  expect(code).toContain(`export ANIMAL_STORE='${address}/v1'\nexport API_KEY='${key}'\n`);
  expect(code).toContain(`Link: <${address}/v1/pets?limit=100&status=available&after=100>; rel="next"`);
}

/** Opens the page with all forms open. `send` sends what is in the form of an operation. */
async function openForm(id: string) {
  const { page, complaints } = await openPage(ORIGIN);
  await page.evaluate(OPEN_FORMS);
  if (IS_DEPLOYED) await page.getByLabel("API key").first().fill(API_KEY);
  const form = page.locator(`section:has(> #${id}) > details`);
  const status = form.getByRole("status");
  const send = async () => {
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), form.getByRole("button").press("Enter")]);
    await expect.poll(() => status.innerText()).toMatch(/^Status \d+$/);
    return { request, response: `${await status.innerText()}\n${await form.locator("pre").innerText()}` };
  };
  return { page, complaints, form, status, send };
}

describe.skipIf(SKIPPED)(`the page, in Chromium${SKIPPED}`, () => {
  describe.each(VIEWS)("$viewport.width pixels wide, $colorScheme", (view) => {
    it("is accessible, also in print, and loads at most 80 kB", async () => {
      const { page, complaints, responses } = await openPage(ORIGIN, view);
      await page.evaluate(OPEN_FORMS);
      await expectAccessible(page);
      await page.emulateMedia({ media: "print" });
      if (view.colorScheme === "light") await expectAccessible(page);
      expect(await shown(page)).toEqual(all("curl"));
      expect(await page.locator("button:visible, form:visible").count()).toBe(0);
      const sizes = await Promise.all(responses.map(async (response) => gzipSync(await response.body()).length));
      expect(sizes).toHaveLength(4);
      expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(80_000);
      expect(complaints).toEqual([]);
    });

    it("shows and copies all examples in one language, even after a reload", async () => {
      const language = { light: "JavaScript", dark: "Python" }[view.colorScheme];
      const permissions = ["clipboard-read", "clipboard-write"];
      const { page, complaints } = await openPage(ORIGIN, { ...view, permissions });
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
      const select =
        "getSelection().selectAllChildren(document.querySelector('pre:has(button)')), String(getSelection())";
      expect(await page.evaluate(select)).not.toMatch(/Copy|Copied/);
      expect(complaints).toEqual([]);
    });
  });

  it.each(describedOperations)("sends the example of $operationId without empty parameters", async (operation) => {
    const { operationId, method, path, parameters, requestBody } = operation;
    const { page, complaints, form, send } = await openForm(operationId);
    const id = String(await addAnimal());
    for (const { name, required } of parameters) {
      expect(await form.getByLabel(name).inputValue()).toBe("");
      if (required) await form.getByLabel(name).fill(id);
    }
    const { request, response } = await send();
    const headers = await request.allHeaders();
    expect(`${request.method()} ${request.url()}`).toBe(`${method} ${ORIGIN}/v1${path.replace(/\{\w+\}/, id)}`);
    expect(headers["authorization"]).toBe(`Bearer ${API_KEY}`);
    expect(Object.keys(headers).filter((name) => /bookmark|idempotency/.test(name))).toEqual([]);
    expect(request.postDataJSON()).toEqual(requestBody?.content["application/json"].example ?? null);
    expect(response).toMatch(/^Status (20[014]|410)\n(.+\n)*Worker-Version: .+\n/);
    expect(response).toMatch(/^Status 204|\n\n[{[]/);
    expect(await page.evaluate("JSON.stringify([location.href, localStorage, sessionStorage])")).not.toContain(API_KEY);
    expect(complaints).toEqual([]);
  });

  it("adds an animal to the last digit, with the headers that are filled in", async () => {
    const { form, send } = await openForm("createPet");
    expect(await form.innerText()).toContain("This request changes the store");
    const key = crypto.randomUUID();
    await form.getByLabel("Idempotency-Key").fill(key);
    await form.getByLabel("JSON").fill('{"name":"Rex","categoryId":9223372036854775807}');
    const { request, response } = await send();
    expect(request.headers()["idempotency-key"]).toBe(key);
    expect(response).toMatch(/^Status 201\n[\s\S]*Location: \/v1\/pets\/\d+\n[\s\S]*"categoryId":9223372036854775807,/);
  });

  it("sends the parameters that are filled in, with the key of any form", async () => {
    const { page, form, send } = await openForm("listPets");
    await form.getByLabel("limit").fill("1");
    await form.getByLabel("status").selectOption("sold");
    await page.getByLabel("API key").last().fill("wrong");
    const { request, response } = await send();
    expect(request.url()).toBe(`${ORIGIN}/v1/pets?limit=1&status=sold`);
    expect(response).toMatch(/^Status 401\n[\s\S]*WWW-Authenticate: Bearer .*invalid_token/);
    await page.getByLabel("API key").last().fill("");
    expect((await send()).response).toContain("An API key is required");
  });

  it("sends once, keeps the focus, and shows that a request failed", async () => {
    const { page, form, status } = await openForm("createPet");
    const button = form.getByRole("button");
    const requests: Route[] = [];
    await page.route("**/v1/**", (route) => requests.push(route));
    await form.getByLabel("API key").press("Enter");
    await button.press("Enter");
    await button.press("Enter");
    expect(await status.innerText()).toBe("Sending…");
    expect(requests).toHaveLength(1);
    expect(await button.evaluate((element) => element.matches(":focus"))).toBe(true);
    await requests[0]?.abort();
    await expect.poll(() => status.innerText()).toMatch(/^The request failed: ./);
  });

  it.each([
    { origin: ELSEWHERE, key: PLACEHOLDERS.key },
    { origin: ORIGIN, key: ORIGIN === ELSEWHERE ? PLACEHOLDERS.key : "local-key" },
  ])("has, at $origin, this address and the key $key", async ({ origin, key }) => {
    const { page } = await openPage(origin);
    await expectFilledIn(page, { address: origin, key });
    const keys = page.locator(".key");
    for (const field of await keys.all()) expect(await field.inputValue()).toBe(key.replace(PLACEHOLDERS.key, ""));
    expect(await keys.count()).toBe(describedOperations.length);
  });

  it("is complete without JavaScript: placeholders, every example in every language, and the description", async () => {
    const { page } = await openPage(ORIGIN, { javaScriptEnabled: false });
    await expectFilledIn(page, PLACEHOLDERS);
    expect(await shown(page)).toEqual(all("curl"));
    expect(await page.locator("section > details, button").count()).toBe(0);
    const plain = (text: string) => text.replaceAll(/[`\s]/g, "");
    const text = plain(await page.locator("main").innerText());
    const missing: string[] = [];
    JSON.stringify([description.paths, description.components], function (this: { format?: string }, key, value) {
      if (key === "pattern" && this.format) return;
      const names = /^(headers|properties|responses)$/.test(key) ? Object.keys(value) : [];
      const parts = key in LABELS ? [LABELS[key] + (key === "example" ? printJson(value) : value)] : names;
      missing.push(...parts.filter((part) => !text.includes(plain(part))));
      return typeof value === "bigint" ? String(value) : value;
    });
    expect(missing).toEqual([]);
    for (const tab of await page.locator("summary", { hasText: "Python" }).all()) await tab.click();
    expect(await shown(page)).toEqual(all("Python"));
  });
});
