// The page in a real browser. That its examples run is tested in guide.test.ts.

import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { INT64 } from "../../src/values/int64.ts";
import { describedOperations } from "../conformance.ts";
import { ELSEWHERE, expectAccessible, NO_CHROMIUM, openPage } from "./chromium.ts";
import { API_KEY, addAnimal, IS_DEPLOYED, IS_REMOVED, ORIGIN } from "./service.ts";

const GUIDE = readFileSync("src/site/guide.md", "utf8");
const PLACEHOLDERS = { address: "https://<your address>", key: "<your API key>" };
const OPEN_FORMS = "for (const form of document.querySelectorAll('.form')) form.open = true";
const KEY = "Idempotency-Key";
const AGAIN = ` Sending this again with the same ${KEY} adds no second animal.`;
const LOST = `✗ Failure: there was no complete response. The request may have arrived.${AGAIN}`;
const LAPTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const SCREENS = [LAPTOP, PHONE].flatMap((size) => [["light", size] as const, ["dark", size] as const]);

/** The languages of all examples whose code is visible. */
const shown = (page: Page) => page.locator(".tabs > details:has(pre:visible) > summary").allTextContents();

const codeOf = async (page: Page) => (await page.locator("pre").allTextContents()).join();
const filledIn = ({ address, key }: typeof PLACEHOLDERS) =>
  `export ANIMAL_STORE='${address}/v1'\nexport API_KEY='${key}'\n`;

/** Where an element is, in the window. */
const boxOf = async (page: Page, selector: string) =>
  (await page.locator(selector).first().boundingBox()) ?? expect.fail(`${selector} is not visible.`);

/** Responds to the next requests instead of the service. Without a status, the connection is lost. */
const respond = (page: Page, status: number, body = "") =>
  page.route("**/v1/**", (route) => (status ? route.fulfill({ status, body }) : route.abort()));

/** The form of an operation. `send` returns the request, and what the form then shows. */
function formOf(page: Page, id: string) {
  const form = page.locator(`section:has(#${id}) .form`);
  const button = form.getByRole("button", { name: "Send", exact: true });
  const send = async (control = button) => {
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), control.press("Enter")]);
    const output = form.locator("output", { hasNotText: "Sending…" });
    return { request, text: (await output.innerText()).trim(), body: await form.locator("pre").innerText() };
  };
  return { form, button, send, field: (name: string) => form.getByRole("textbox", { name }).first() };
}

/** Opens the page with all forms open, and the API key in them. Returns the form of an operation. */
async function openForm(id: string) {
  const opened = await openPage(ORIGIN, { viewport: LAPTOP });
  await opened.page.evaluate(OPEN_FORMS);
  const form = formOf(opened.page, id);
  await form.field("API key").fill(API_KEY);
  return { ...opened, ...form };
}

describe.skipIf(NO_CHROMIUM)(`the page, in Chromium${NO_CHROMIUM}`, () => {
  it("is accessible, in the dark and on a phone, too, and loads at most 25 kB", async () => {
    const { page, complaints, responses, send, field } = await openForm("createPet");
    const sizes = await Promise.all(responses.map(async (response) => gzipSync(await response.body()).length));
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(25_000);
    await formOf(page, "listPets").send();
    await field("JSON").fill("{");
    await send();
    for (const [colorScheme, viewport] of SCREENS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      await expectAccessible(page);
    }
    await page.getByText("Contents", { exact: true }).click();
    await expectAccessible(page);
    expect(complaints).toEqual([]);
  });

  it("uses the width: for a request beside its response, text, errors and, on a phone, long programs", async () => {
    const { page } = await openPage(ORIGIN, { viewport: LAPTOP });
    const [request, response] = [await boxOf(page, "section pre ~ pre"), await boxOf(page, "section pre ~ pre ~ pre")];
    expect([response.y, response.y + response.height < LAPTOP.height]).toEqual([request.y, true]);
    expect((await boxOf(page, "#keys-and-support ~ p")).width).toBe(640);
    expect((await boxOf(page, "table")).width).toBeGreaterThan((await boxOf(page, "main")).width - 50);
    const sizes = `[...document.querySelectorAll("code")].map((code) => parseFloat(getComputedStyle(code).fontSize))`;
    expect(Math.min(...(await page.evaluate<number[]>(sizes)))).toBeGreaterThanOrEqual(13.5);
    const program = page.locator("section:has(#pagination) code[class]");
    const { height } = (await program.boundingBox()) ?? expect.fail();
    await page.setViewportSize(PHONE);
    expect((await program.boundingBox())?.height).toBeLessThan(height + 50); // Its button has a line of its own.
    await program.press("ArrowRight");
    await expect.poll(() => page.evaluate("document.activeElement.scrollLeft")).toBeGreaterThan(0);
  });

  it("shows all examples in the language that was chosen", async () => {
    const { page } = await openPage(ORIGIN);
    expect(await shown(page)).toContain("curl");
    const tab = page.locator("summary", { hasText: "JavaScript" }).last();
    await tab.scrollIntoViewIfNeeded();
    const top = async () => (await tab.boundingBox())?.y ?? Number.NaN;
    const before = await top();
    await tab.press("Enter");
    expect(Math.abs((await top()) - before)).toBeLessThanOrEqual(1);
    expect(new Set(await shown(page))).toEqual(new Set(["JavaScript"]));
  });

  it("copies an example as it is in the guide, and does not select the button with it", async () => {
    const { page, complaints } = await openPage(ORIGIN, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.getByRole("button", { name: "Copy" }).last().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(GUIDE).toContain(`\n${await page.evaluate("navigator.clipboard.readText()")}\`\`\``);
    await page.keyboard.press("ControlOrMeta+A");
    const selected = await page.evaluate("String(getSelection())");
    expect(selected).toContain("Idempotency-Key");
    expect(selected).not.toMatch(/^Cop(y|ied)$/m);
    expect(complaints).toEqual([]);
  });

  it("sends the example of each operation, and nothing that nobody filled in", async () => {
    const { page, complaints } = await openForm("listPets");
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
      expect(text).toMatch(deprecated && IS_REMOVED ? /^✗ Failure: status 410\.$/ : /^✓ Success: status 2\d\d\./);
      expect(body).toMatch(/^.+\n\n(.+: .*\n)*api-key-name: .+\n(.+: .*\n)*$/);
      expect(body).not.toContain("access-control");
    }
    expect(complaints).toEqual([]);
  });

  it("shows an animal as it was sent: every digit, and markup as text", async () => {
    const { form, send, field } = await openForm("createPet");
    const members = `"name":"<img src=x onerror=alert(1)>","categoryId":${INT64.maximum},"status":"sold"}`;
    await field("JSON").fill(`{${members}`);
    expect((await send()).body).toContain(members);
    expect(await form.locator("img").count()).toBe(0);
  });

  it("sends what is filled in, and has links to the next page and to what a status means", async () => {
    const { page, form, send, field } = await openForm("listPets");
    for (let i = 0; i < 2; i++) await addAnimal();
    await field("limit").fill("1");
    await form.locator("select").selectOption("available");
    expect((await send()).request.url()).toBe(`${ORIGIN}/v1/pets?limit=1&status=available`);
    const link = form.locator("pre a");
    const next = (await link.textContent()) ?? "";
    expect((await send(link)).request.url()).toBe(next);
    expect(await field("after").inputValue()).toBe(new URL(next).searchParams.get("after"));
    await field("limit").fill("0");
    expect((await send()).text).toBe("✗ Failure: status 400.");
    await form.getByRole("link", { name: "status 400" }).click();
    expect(await page.evaluate("document.querySelector(':target').id")).toBe("error-invalid_request");
  });

  it("takes an API key as it was copied, for all forms, and rejects one that is not valid", async () => {
    const { page, button, send } = await openForm("listPets");
    await respond(page, 401);
    const key = formOf(page, "createPet").field("API key");
    for (const before of ["  Bearer ", "bearer  ", "BEARER\t", ""]) {
      await key.fill(`${before}a-key~of/16+characters=  `);
      expect((await send()).request.headers()["authorization"]).toBe("Bearer a-key~of/16+characters=");
    }
    await key.fill("ключ");
    await button.press("Enter");
    expect(await page.locator("#listPets ~ .form .key:focus:invalid").count()).toBe(1);
  });

  it("forgets the API key when the page is left", async () => {
    const { page } = await openPage(ELSEWHERE);
    await page.evaluate(OPEN_FORMS);
    const field = page.getByLabel("API key").first();
    await field.fill("a-key-of-16-characters");
    await page.goto(`${ELSEWHERE}/openapi.json`);
    await page.goBack();
    expect(await page.evaluate("JSON.stringify([localStorage, sessionStorage])")).not.toContain("a-key");
    await page.evaluate(OPEN_FORMS);
    expect(await field.inputValue()).toBe("");
    await field.fill("a-key-of-16-characters");
    // As in a browser that has kept the page.
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
    expect(await field.inputValue()).toBe("");
  });

  it("adds an animal once, however often it is sent, because only an edit brings a new Idempotency-Key", async () => {
    const { page, send, field } = await openForm("createPet");
    const added: (string | undefined)[] = [];
    await page.route("**/v1/**", async (route) => {
      const response = await route.fetch();
      added.push(response.headers()["location"]);
      await (added.length === 1 ? route.abort() : route.fulfill({ response }));
    });
    expect((await send()).text).toBe(LOST);
    for (let i = 0; i < 2; i++) expect((await send()).text).toBe(`✓ Success: status 201.${AGAIN}`);
    await field("JSON").press("Space");
    expect((await send()).text).toBe(`✓ Success: status 201.${AGAIN}`);
    expect(added.map((path) => added.indexOf(path))).toEqual([0, 0, 0, 3]);
    await field(KEY).fill("typed");
    await field("JSON").press("Space");
    expect(await field(KEY).inputValue()).toBe("typed");
    await field(KEY).fill("");
    await field("JSON").press("Space");
    const { request, text } = await send();
    expect(request.headers()).not.toHaveProperty("idempotency-key");
    expect(text).toBe("✓ Success: status 201.");
  });

  it("shows whatever comes, and what its status means", async () => {
    const { page, send, form, button } = await openForm("createPet");
    for (const [status, fragment, again, sent] of [
      [400, "error-invalid_request", "", '{"code":"invalid_request"}'],
      [422, "errors", AGAIN, "<h1>Welcome</h1>"],
      [500, "errors", AGAIN, ""],
      [503, "error-store_unavailable", AGAIN, '{"code":"store_unavailable"}'],
      [503, "error-closed", "", '{"code":"closed"}'],
      [200, "errors", AGAIN, '{"id":1}'],
      [201, "createPet-201", AGAIN, '{"id":1,'],
    ] as const) {
      await respond(page, status, sent);
      const { text, body } = await send();
      expect(text).toBe(`${status === 201 ? "✓ Success" : "✗ Failure"}: status ${status}.${again}`);
      expect(body).toContain(sent || "(empty body)");
      expect(await form.locator("output a").getAttribute("href")).toBe(`#${fragment}`);
    }
    await respond(page, 302);
    expect((await send()).text).toBe(`✗ Failure: the response is a redirect, which is not followed.${AGAIN}`);
    // As for a body that is cut off.
    await page.evaluate("Response.prototype.text = () => Promise.reject(new TypeError())");
    await respond(page, 201);
    expect((await send()).text).toBe(LOST);
    await page.evaluate("document.querySelector('textarea').value = '\"\\ud800\"'");
    await button.press("Enter");
    expect(await form.locator("output").innerText()).toBe("✗ Failure: JSON is not valid Unicode, so nothing was sent.");
    expect(await button.isEnabled()).toBe(true);
  });

  it.each([true, false])("has a menu on a phone (with JavaScript: %s)", async (javaScriptEnabled) => {
    const { page } = await openPage(`${ORIGIN}#createPet-body`, { viewport: PHONE, javaScriptEnabled });
    const bar = await boxOf(page, "header");
    expect(bar.y).toBe(0);
    expect((await boxOf(page, "#createPet-body")).y).toBeGreaterThanOrEqual(bar.height);
    expect(await page.locator("nav").isVisible()).toBe(false);
    await page.getByText("Contents", { exact: true }).press("Enter");
    const { y, height } = await boxOf(page, "nav");
    await page.locator("nav").getByRole("link", { name: "Pagination" }).press("Enter");
    await page.locator("nav").waitFor({ state: javaScriptEnabled ? "hidden" : "visible" });
    // What was chosen is below what covers the page: the bar or, if it stays open, the menu.
    const distance = (await boxOf(page, "#pagination")).y - (javaScriptEnabled ? bar.height : y + height);
    expect(Math.abs(distance - 20)).toBeLessThanOrEqual(20);
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
    if (IS_DEPLOYED) return;
    const { API_KEY: key = "" } = parseEnv(readFileSync(".dev.vars.example", "utf8"));
    await page.goto(ORIGIN);
    expect(await codeOf(page)).toContain(filledIn({ address: ORIGIN, key }));
  });

  it("has placeholders, no forms, and every example in every language without JavaScript", async () => {
    const { page } = await openPage(ORIGIN, { javaScriptEnabled: false });
    expect(await codeOf(page)).toContain(filledIn(PLACEHOLDERS));
    expect(await page.locator(":is(.form, button):visible").count()).toBe(0);
    for (const tab of await page.locator("summary:visible", { hasText: "Python" }).all()) await tab.click();
    expect(await shown(page)).toEqual(GUIDE.match(/^```\n\n```python/gm)?.map(() => "Python"));
  });
});
