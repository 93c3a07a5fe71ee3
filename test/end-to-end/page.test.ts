// The page in a real browser. That its examples run is tested in guide.test.ts.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import type { Page, Route } from "playwright-core";
import { describe, expect, it } from "vitest";
import { CLOSED } from "../../src/http/maintenance.ts";
import { description } from "../../src/openapi/document.ts";
import { describedOperations } from "../conformance.ts";
import { ELSEWHERE, expectAccessible, openPage, SKIPPED } from "./chromium.ts";
import { API_KEY, addAnimal, IS_DEPLOYED, IS_REMOVED, ORIGIN } from "./service.ts";

const GUIDE = readFileSync("src/site/guide.md", "utf8");
const PLACEHOLDERS = { address: "https://<your address>", key: "<your API key>" };
const OPEN_FORMS = "for (const form of document.querySelectorAll('.form')) form.open = true";
const KEY = "Idempotency-Key";

/** The languages of all examples whose code is visible. */
const shown = (page: Page) => page.locator(".tabs > details:has(pre:visible) > summary").allTextContents();

const codeOf = async (page: Page) => (await page.locator("pre").allTextContents()).join();
const filledIn = ({ address, key }: typeof PLACEHOLDERS) =>
  `export ANIMAL_STORE='${address}/v1'\nexport API_KEY='${key}'\n`;

/** Where an element is, in the window. */
const boxOf = async (page: Page, selector: string) =>
  (await page.locator(selector).first().boundingBox()) ?? expect.fail(`${selector} is not visible.`);

/** Opens the page with all forms open. `respond` replaces the service. */
async function openForms(respond?: (route: Route) => Promise<void>) {
  const { page, complaints } = await openPage(ORIGIN);
  await page.evaluate(OPEN_FORMS);
  if (respond) await page.route("**/v1/**", respond);
  if (IS_DEPLOYED) await page.getByLabel("API key").first().fill(API_KEY);
  return { page, complaints };
}

/** The form of an operation. `send` returns the request, and what the form then shows. */
function formOf(page: Page, id: string) {
  const form = page.locator(`section:has(#${id}) .form`);
  const button = form.getByRole("button", { name: "Send", exact: true });
  const send = async (control = button) => {
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), control.press("Enter")]);
    const output = form.locator("output.success, output.failure");
    return { request, text: (await output.innerText()).trim(), body: await form.locator("pre").innerText() };
  };
  return { form, button, send, field: (name: string) => form.getByRole("textbox", { name }).first() };
}

describe.skipIf(SKIPPED)(`the page, in Chromium${SKIPPED}`, () => {
  it("is accessible, in the dark and on a phone, too, and loads at most 80 kB", async () => {
    const { page, complaints, responses } = await openPage(ORIGIN, { viewport: { width: 1440, height: 900 } });
    const sizes = await Promise.all(responses.map(async (response) => gzipSync(await response.body()).length));
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(80_000);
    await page.evaluate(OPEN_FORMS);
    await expectAccessible(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 390, height: 844 });
    await expectAccessible(page);
    expect(complaints).toEqual([]);
  });

  it("shows and copies all examples in one language, even after a reload", async () => {
    const { page, complaints } = await openPage(ORIGIN, { permissions: ["clipboard-read", "clipboard-write"] });
    expect(await shown(page)).toContain("curl");
    const tab = page.locator("summary", { hasText: "JavaScript" }).last();
    await tab.scrollIntoViewIfNeeded();
    const top = async () => (await tab.boundingBox())?.y ?? Number.NaN;
    const before = await top();
    await tab.press("Enter");
    expect(Math.abs((await top()) - before)).toBeLessThanOrEqual(1);
    await page.reload();
    expect(new Set(await shown(page))).toEqual(new Set(["JavaScript"]));
    await page.getByRole("button", { name: "Copy" }).last().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(GUIDE).toContain(`\n${await page.evaluate("navigator.clipboard.readText()")}\`\`\``);
    expect(complaints).toEqual([]);
  });

  it("sends the example of each operation, and nothing that nobody filled in", async () => {
    const { page, complaints } = await openForms();
    if (!IS_DEPLOYED) expect(await codeOf(page)).toContain(filledIn({ address: ORIGIN, key: API_KEY }));
    const id = String(await addAnimal());
    for (const { operationId, method, path, requestBody, deprecated } of describedOperations) {
      const { send, field } = formOf(page, operationId);
      if (path.includes("{petId}")) await field("petId").fill(id);
      const { request, text, body } = await send();
      expect(`${request.method()} ${request.url()}`).toBe(`${method} ${ORIGIN}/v1${path.replace("{petId}", id)}`);
      const { authorization, ...headers } = await request.allHeaders();
      expect(authorization).toBe(`Bearer ${API_KEY}`);
      const optional = Object.keys(headers).filter((name) => /bookmark|idempotency/.test(name));
      expect(optional).toEqual(requestBody ? ["idempotency-key"] : []);
      if (deprecated && IS_REMOVED) expect(text).toContain("Status 410");
      else expect(text).toMatch(/^✓ Success: Status 20[01]\./);
      expect(body).toMatch(/^(.+: .*\n)*api-key-name: .+\n(.+: .*\n)*\n[{[].*[}\]]$/);
      // Exact, from the example to the store and back.
      if (requestBody) expect(body).toContain('"categoryId":9223372036854775807');
    }
    expect(await page.evaluate("JSON.stringify([location.href, localStorage, sessionStorage])")).not.toContain(API_KEY);
    expect(complaints).toEqual([]);
  });

  const ANIMAL = '{"id":9007199254740993,"name":"<img src=x onerror=alert(1)>"}';
  const HTML = "<h1>Welcome</h1>";
  const OTHER = ", but not a complete response of the service";

  it("sends what is filled in, follows the link to the next page, and takes only a list for a list", async () => {
    const { page } = await openForms();
    const { form, send, field } = formOf(page, "listPets");
    for (let i = 0; i < 2; i++) await addAnimal();
    await field("limit").fill("1");
    await form.locator("select").selectOption("available");
    expect((await send()).request.url()).toBe(`${ORIGIN}/v1/pets?limit=1&status=available`);
    const link = form.locator("pre a");
    const next = (await link.textContent()) ?? "";
    expect((await send(link)).request.url()).toBe(next);
    expect(await field("after").inputValue()).toBe(new URL(next).searchParams.get("after"));
    await field("limit").fill("0");
    expect((await send()).text).toBe("✗ Failure: Status 400.");
    await form.getByRole("link", { name: "Status 400" }).click();
    expect(await page.evaluate("document.querySelector(':target').id")).toBe("error-400");
    const bodies = [HTML, "{}", ANIMAL, "[]"];
    await page.route("**/v1/**", (route) => route.fulfill({ body: bodies.shift() ?? "" }));
    for (let i = 0; i < 3; i++) expect((await send()).text).toBe(`✗ Failure: Status 200${OTHER}.`);
    expect((await send()).text).toBe("✓ Success: Status 200.");
  });

  it("takes a key as it was copied, and focuses a field that is empty or cannot be sent", async () => {
    const { page } = await openForms((route) => route.fulfill({ status: 401 }));
    const { button, send, field } = formOf(page, "createPet");
    await page.getByLabel("API key").last().fill("  Bearer a-key~of/16+characters=  ");
    expect((await send()).request.headers()["authorization"]).toBe("Bearer a-key~of/16+characters=");
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.url()));
    // The browser focuses the first field that is wrong.
    for (const [name, wrong] of Object.entries({ JSON: "", [KEY]: "ключ", "API key": "ключ" })) {
      await field(name).fill(wrong);
      await button.press("Enter");
      expect(await field(name).evaluate((element) => element.matches(":focus"))).toBe(true);
    }
    await field("API key").fill("");
    await button.press("Enter");
    expect(sent).toEqual([]);
  });

  it("is right about what happened to a create, which it keeps with its key until that is known", async () => {
    const AGAIN = ` Send the same again with the same ${KEY}: it adds no second animal.`;
    const rejection = JSON.stringify({ code: "service_unavailable", message: CLOSED });
    // 0: the connection is lost. In their order: a rejected create is not kept, unless it may have been added before.
    const answers: [status: number, body: string, shown: string, isKept?: boolean][] = [
      [503, rejection, "Status 503.", false],
      [422, '{"code":"unprocessable_content"}', "Status 422.", false],
      [302, "", `The response is a redirect, which is not followed.${AGAIN}`],
      [502, HTML, `Status 502${OTHER}.${AGAIN}`],
      [429, "error code: 1015", `Status 429${OTHER}.`],
      [200, HTML, `Status 200${OTHER}.${AGAIN}`],
      [201, ANIMAL.slice(0, -1), `Status 201${OTHER}.${AGAIN}`],
      [500, '{"code":"internal_error"}', `Status 500.${AGAIN}`],
      [0, "", `There was no connection, or it was lost.${AGAIN}`],
    ];
    let [status, body] = [0, ""];
    const { page } = await openForms(async (route) => {
      const headers = status === 302 ? { Location: "/" } : {};
      await (status ? route.fulfill({ status, body, headers }) : route.abort());
    });
    const { form, send, field } = formOf(page, "createPet");
    const textarea = form.locator("textarea");
    const json = '{"name":"Rex","categoryId":9223372036854775807}';
    const key = await field(KEY).inputValue();
    for (const [code, text, shown, isKept = true] of answers) {
      [status, body] = [code, text];
      await textarea.fill(code === 429 ? "{}" : json);
      expect((await send()).text).toBe(`✗ Failure: ${shown}`);
      const kept = await page.evaluate("sessionStorage.getItem('createPet')");
      expect(kept).toBe(isKept ? JSON.stringify([key, json]) : null);
    }
    await page.reload();
    expect(await form.locator("output").innerText()).toBe(`✗ Failure: The outcome is not known.${AGAIN}`);
    [status, body] = [201, ANIMAL];
    const { request, ...got } = await send();
    expect([request.headers()["idempotency-key"], request.postData()]).toEqual([key, json]);
    expect(got.text).toBe(`✓ Success: Status 201. The next animal has a new ${KEY}.`);
    expect(got.body).toContain(`\n${ANIMAL}`);
    expect(await field(KEY).inputValue()).toMatch(RegExp(`^(?!${key})\\d+-\\d+$`));
    await page.reload();
    expect(await textarea.inputValue()).not.toBe(json);
  });

  it("breaks no line of a program on a wide screen, where an example stays in view beside what is read", async () => {
    const { page } = await openPage(`${ORIGIN}#createPet`);
    const broken = `[...document.querySelectorAll(".code code[class]")].filter((element) => {
      element.style.whiteSpace = "pre";
      return element.clientWidth > 0 && element.scrollWidth > element.clientWidth;
    }).map(({ textContent }) => textContent)`;
    for (const width of [768, 1280, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      for (const tab of ["JavaScript", "Python", "curl"]) {
        await page.locator("summary", { hasText: tab }).first().click();
        expect(await page.evaluate(broken)).toEqual([]);
      }
    }
    await page.locator("#createPet-headers").scrollIntoViewIfNeeded();
    const [title, code] = [await boxOf(page, "#createPet"), await boxOf(page, "section:has(#createPet) > .code")];
    expect(code.x).toBeGreaterThan(title.x + title.width);
    expect([code.y >= 0, code.y + code.height <= 900]).toEqual([true, true]);
  });

  it("has contents that mark one section or, on a small screen, open from everywhere and close", async () => {
    const { page } = await openPage(`${ORIGIN}#createPet-body`, { viewport: { width: 1440, height: 900 } });
    await page.locator("nav").getByRole("link", { name: "Versions" }).press("Enter");
    expect(await page.locator("nav a:target-current").allTextContents()).toEqual(["Versions"]);
    // A phone, and 1440 pixels at 200 %.
    for (const width of [390, 720]) {
      await page.setViewportSize({ width, height: 450 });
      await page.goto(`${ORIGIN}#createPet-body`);
      const bar = await boxOf(page, ".contents");
      expect(bar.y).toBe(0);
      expect((await boxOf(page, "#createPet-body")).y).toBeGreaterThanOrEqual(bar.height);
      expect(await page.locator("#contents").isVisible()).toBe(false);
      await page.getByRole("link", { name: "Contents", exact: true }).press("Enter");
      expect((await boxOf(page, "#contents")).y).toBeLessThan(bar.height + 24);
      await page.locator("#contents").getByRole("link", { name: "Pagination" }).press("Enter");
      expect(await page.locator("#contents").isVisible()).toBe(false);
      expect((await boxOf(page, "#pagination")).y).toBeLessThan(450 / 2);
    }
  });

  it("has the address of the service, to which it sends the key only over HTTPS", async () => {
    const { page } = await openPage(ELSEWHERE);
    const address = ELSEWHERE.replace("http:", "https:");
    expect(await codeOf(page)).toContain(filledIn({ address, key: PLACEHOLDERS.key }));
    await page.evaluate(OPEN_FORMS);
    const field = page.getByLabel("API key").first();
    expect(await field.inputValue()).toBe("");
    await field.fill("key");
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), field.press("Enter")]);
    expect(request.url()).toBe(`${address}/v1/pets`);
  });

  it("is complete without JavaScript: placeholders, every example in every language, and the description", async () => {
    const { page } = await openPage(ORIGIN, { javaScriptEnabled: false });
    expect(await codeOf(page)).toContain(filledIn(PLACEHOLDERS));
    expect(await page.locator(".form, button").count()).toBe(0);
    const plain = (text: string) => text.replaceAll(/[`\s]/g, "");
    const text = plain(await page.locator("main").innerText());
    const missing: string[] = [];
    JSON.stringify([description.paths, description.components], (keyword, value) => {
      if (keyword === "description" && !text.includes(plain(value))) missing.push(value);
      return typeof value === "bigint" ? String(value) : value;
    });
    expect(missing).toEqual([]);
    for (const tab of await page.locator("summary", { hasText: "Python" }).all()) await tab.click();
    expect(await shown(page)).toEqual(GUIDE.match(/^```\n\n```python/gm)?.map(() => "Python"));
  });
});
