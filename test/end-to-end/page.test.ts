// The page in a real browser. That its examples run is tested in guide.test.ts.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import type { Locator, Page, Route } from "playwright-core";
import { describe, expect, it } from "vitest";
import { description } from "../../src/openapi/document.ts";
import { describedOperations } from "../conformance.ts";
import { ELSEWHERE, expectAccessible, openPage, SKIPPED, VIEWS } from "./chromium.ts";
import { API_KEY, addAnimal, IS_DEPLOYED, ORIGIN } from "./service.ts";

const GUIDE = readFileSync("src/site/guide.md", "utf8");
const PLACEHOLDERS = { address: "https://<your address>", key: "<your API key>" };
const OPEN_FORMS = "for (const form of document.querySelectorAll('section > details')) form.open = true";

/** The languages of all examples whose code is visible. */
const shown = (page: Page) => page.locator(".tabs > details:has(pre:visible) > summary").allTextContents();
const examples = [...Array.from(GUIDE.matchAll(/^```\n\n```python/gm)), ...describedOperations];
const all = (language: string) => examples.map(() => language);

async function expectFilledIn(page: Page, { address, key }: typeof PLACEHOLDERS): Promise<void> {
  const code = (await page.locator("pre").allTextContents()).join();
  expect(code).toContain(`ANIMAL_STORE='${address}/v1'\nAPI_KEY='${key}'\n`);
  expect(code).toContain(`Link: <${address}/v1/pets?limit=100&status=available&after=100>; rel="next"`);
}

/** Opens the page with all forms open. `send` sends what is in the form of an operation. */
async function openForm(id: string, respond?: (route: Route) => Promise<void>) {
  const { page, complaints } = await openPage(ORIGIN);
  await page.evaluate(OPEN_FORMS);
  if (respond) await page.route("**/v1/**", respond);
  if (IS_DEPLOYED) await page.getByLabel("API key").first().fill(API_KEY);
  const form = page.locator(`section:has(> #${id}) > details`);
  const status = form.getByRole("status");
  const button = form.getByRole("button", { name: "Send", exact: true });
  const send = async (through = button) => {
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), through.press("Enter")]);
    await form.locator("output.success, output.failure").waitFor();
    return { request, response: `${await status.innerText()}\n${await form.locator("pre").innerText()}` };
  };
  const isFocused = (field: Locator) => field.evaluate((element) => element.matches(":focus"));
  return { page, complaints, form, status, button, send, isFocused };
}

/** Where an element is, in the window. */
const boxOf = async (page: Page, selector: string) => {
  const box = await page.locator(selector).first().boundingBox();
  return box ?? expect.fail(`${selector} is not visible.`);
};

/** The longest line of each program that has one that does not fit. */
const brokenIn = (page: Page, programs: string) =>
  page.evaluate(`[...document.querySelectorAll("${programs}")].filter((element) => {
    element.style.whiteSpace = "pre";
    return element.scrollWidth > element.clientWidth;
  }).map(({ textContent }) => textContent.split("\\n").sort((a, b) => b.length - a.length)[0])`);

describe.skipIf(SKIPPED)(`the page, in Chromium${SKIPPED}`, () => {
  it.each(VIEWS)("is accessible, also in print, and loads at most 80 kB: $viewport.width pixels wide", async (view) => {
    const { page, complaints, responses } = await openPage(ORIGIN, view);
    await page.evaluate(OPEN_FORMS);
    await expectAccessible(page);
    await page.emulateMedia({ media: "print" });
    if (view.colorScheme === "light") await expectAccessible(page);
    expect(await shown(page)).toEqual(all("curl"));
    const interactive = "button:visible, form:visible, .contents:visible, .tabs summary:visible";
    expect(await page.locator(interactive).count()).toBe(0);
    const paddings = "[...document.querySelectorAll('pre > code')].map((code) => getComputedStyle(code).padding)";
    expect([...new Set(await page.evaluate<string[]>(paddings))]).toEqual(["16px"]);
    const sizes = await Promise.all(responses.map(async (response) => gzipSync(await response.body()).length));
    expect(sizes).toHaveLength(4);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(80_000);
    expect(complaints).toEqual([]);
  });

  it("shows and copies all examples in one language, even after a reload", async () => {
    const permissions = ["clipboard-read", "clipboard-write"];
    const { page, complaints } = await openPage(ORIGIN, { ...VIEWS[1], permissions });
    const tab = page.locator("summary", { hasText: "JavaScript" }).last();
    await tab.scrollIntoViewIfNeeded();
    const top = async () => (await tab.boundingBox())?.y ?? NaN;
    const before = await top();
    await tab.press("Enter");
    expect(Math.abs((await top()) - before)).toBeLessThanOrEqual(1);
    expect(await shown(page)).toEqual(all("JavaScript"));
    await page.reload();
    expect(await shown(page)).toEqual(all("JavaScript"));
    await page.getByRole("button", { name: "Copy" }).last().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(GUIDE).toContain(`\n${await page.evaluate("navigator.clipboard.readText()")}\`\`\``);
    expect(complaints).toEqual([]);
  });

  it.each(describedOperations)("sends the example of $operationId without empty parameters", async (operation) => {
    const { operationId, method, path, parameters, requestBody } = operation;
    const { page, complaints, form, send } = await openForm(operationId);
    const id = String(await addAnimal());
    for (const { name, required } of parameters) {
      const field = form.getByLabel(name).first();
      expect(await field.inputValue()).toMatch(name === "Idempotency-Key" ? /^[\da-f]{32}$/ : /^$/);
      if (required) await field.fill(id);
    }
    const { request, response } = await send();
    const headers = await request.allHeaders();
    expect(`${request.method()} ${request.url()}`).toBe(`${method} ${ORIGIN}/v1${path.replace(/\{\w+\}/, id)}`);
    expect(headers["authorization"]).toBe(`Bearer ${API_KEY}`);
    const optional = Object.keys(headers).filter((name) => /bookmark|idempotency/.test(name));
    expect(optional).toEqual(requestBody ? ["idempotency-key"] : []);
    expect(request.postDataJSON()).toEqual(requestBody?.content["application/json"].example ?? null);
    expect(response).toMatch(/^Status (20[014]|410).*\n(.+\n)*API-Key-Name: .+\n/);
    expect(response).toMatch(/^Status 204|\n\n[{[]/);
    expect(response).not.toContain("Worker-Version");
    expect(await page.evaluate("JSON.stringify([location.href, localStorage, sessionStorage])")).not.toContain(API_KEY);
    expect(complaints).toEqual([]);
  });

  it("sends what is filled in, with the key of any form, and links the status", async () => {
    const { page, form, send, status } = await openForm("createPet");
    expect(await form.innerText()).toContain("This request changes the store");
    const key = crypto.randomUUID();
    await form.getByRole("textbox", { name: "Idempotency-Key" }).fill(key);
    await form.getByLabel("JSON").fill('{"name":"Rex","categoryId":9223372036854775807}');
    const { request, response } = await send();
    expect(request.headers()["idempotency-key"]).toBe(key);
    expect(response).toMatch(
      RegExp(
        `^Status 201, .*${key}.+New.\\n[\\s\\S]*Location: /v1/pets/\\d+\\n[\\s\\S]*"categoryId":9223372036854775807,`,
      ),
    );
    expect(await status.getAttribute("class")).toBe("success");
    const anyKey = page.getByLabel("API key").last();
    await anyKey.fill("wrong");
    expect((await send()).response).toMatch(/^Status 401, [\s\S]*WWW-Authenticate: Bearer .*invalid_token/);
    expect(await status.getAttribute("class")).toBe("failure");
    await form.getByRole("link", { name: "Status 401" }).click();
    expect(await page.evaluate("document.querySelector(':target').id")).toBe("error-401");
    await anyKey.fill(API_KEY);
    expect((await send(form.getByLabel("API key"))).response).toMatch(/^Status 201/);
  });

  it("shows that it waits, and changes nothing that the request depends on", async () => {
    const requests: Route[] = [];
    const { page, form, button, status, isFocused } = await openForm("createPet", async (route) => {
      requests.push(route);
    });
    const idempotencyKey = form.getByRole("textbox", { name: "Idempotency-Key" });
    const key = await idempotencyKey.inputValue();
    for (const _ of "123") await button.press("Enter");
    await expect.poll(() => requests.length).toBe(1);
    expect(await status.innerText()).toBe("Sending…");
    for (const field of [...(await form.getByRole("textbox").all()), ...(await page.locator(".key").all())]) {
      expect(await field.isEditable()).toBe(false);
    }
    expect(await form.getByRole("button", { name: "New Idempotency-Key" }).isDisabled()).toBe(true);
    expect(await isFocused(button)).toBe(true);
    await requests[0]?.abort();
    await expect.poll(() => status.innerText()).toMatch(/^The service cannot be reached, or .* may have been added: /);
    expect(await idempotencyKey.inputValue()).toBe(key);
    await idempotencyKey.fill("mine");
    expect(await idempotencyKey.inputValue()).toBe("mine");
  });

  it("names and focuses an empty required field, and a field with what cannot be sent", async () => {
    const { page, form, status, button, isFocused } = await openForm("createPet");
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.url()));
    const expectProblem = async (field: Locator, text: string, problem: string) => {
      const before = await field.inputValue();
      await field.fill(text);
      await button.press("Enter");
      expect(await status.innerText()).toContain(problem);
      expect(await isFocused(field)).toBe(true);
      await field.fill(before);
    };
    await expectProblem(form.getByLabel("JSON"), " ", "JSON is required.");
    await expectProblem(form.getByLabel("API key"), "", "API key is required.");
    for (const wrong of ["clé", "two words"]) {
      await expectProblem(form.getByLabel("API key"), wrong, "This API key cannot be sent: ");
    }
    const idempotencyKey = form.getByRole("textbox", { name: "Idempotency-Key" });
    await expectProblem(idempotencyKey, "ключ", "The Idempotency-Key may have only printable ASCII characters.");
    expect(sent).toEqual([]);
  });

  it("shows a body as it is", async () => {
    const body = '[{"id":9007199254740993}]<img src=x onerror=alert(1)>';
    const { form, send } = await openForm("listPets", (route) => route.fulfill({ body }));
    expect((await send()).response.endsWith(`\n${body}`)).toBe(true);
    expect(await form.locator("img").count()).toBe(0);
  });

  it("says what to do if it is not known whether the animal was added", async () => {
    const { form, send } = await openForm("createPet", (route) => route.fulfill(answers.shift()));
    const gateway = { status: 502, body: "<h1>Bad gateway</h1>" };
    const answers = [gateway, { status: 500, json: { code: "internal_error" } }, gateway];
    expect((await send()).response).toMatch(/^Status 502, .*\. The animal may .* with the same Idempotency-Key\.\n/);
    expect((await send()).response).toMatch(/^Status 500, sent with the Idempotency-Key [\da-f]{32}\n/);
    await form.getByRole("textbox", { name: "Idempotency-Key" }).fill("");
    const { request, response } = await send();
    expect(response).toMatch(/^Status 502\. The animal may .*: list the newest animals before you send it again\.\n/);
    expect(request.headers()).not.toHaveProperty("idempotency-key");
  });

  it("keeps the Idempotency-Key until an animal was added and the form changes, or New is pressed", async () => {
    const statuses = [500, 422, 201, 201, 201, 201, 201];
    const { form, send } = await openForm("createPet", (route) => route.fulfill({ status: statuses.shift() ?? 500 }));
    const field = form.getByRole("textbox", { name: "Idempotency-Key" });
    const json = form.getByLabel("JSON");
    const key = await field.inputValue();
    const sent = async () => (await send()).request.headers()["idempotency-key"];
    await json.fill("{}");
    expect([await sent(), await sent(), await sent(), await sent()]).toEqual(Array(4).fill(key));
    expect(await field.inputValue()).toBe(key);
    await json.fill("[]");
    const second = await sent();
    expect(second).toMatch(/^[\da-f]{32}$/);
    expect(second).not.toBe(key);
    await form.getByRole("button", { name: "New Idempotency-Key" }).click();
    expect(await sent()).not.toBe(second);
    await field.fill("mine");
    expect(await sent()).toBe("mine");
    await json.fill("{}");
    expect(await field.inputValue()).toBe("mine");
  });

  it("has the code beside the text on a wide screen, where it stays in view while its operation is read", async () => {
    const { page } = await openPage(ORIGIN, { viewport: { width: 1440, height: 900 } });
    const [title, request, example] = await Promise.all([
      boxOf(page, "#createPet"),
      boxOf(page, "section:has(#createPet) .request"),
      boxOf(page, "section:has(#createPet) .beside"),
    ]);
    expect(request.x).toBeGreaterThan(title.x + title.width);
    expect(example.x).toBe(request.x);
    await page.locator("#createPet-headers").scrollIntoViewIfNeeded();
    const sticky = await boxOf(page, "section:has(#createPet) .beside");
    expect(sticky.y).toBeGreaterThanOrEqual(0);
    expect(sticky.y + sticky.height).toBeLessThanOrEqual(900);
  });

  it.each([768, 1280, 1440])("breaks no line of a program, and marks one entry, %d pixels wide", async (width) => {
    const { page } = await openPage(ORIGIN, { viewport: { width: 390, height: 900 } });
    await page.setViewportSize({ width, height: 900 });
    for (const tab of ["JavaScript", "Python", "curl"]) {
      await page.locator("summary", { hasText: tab }).first().click();
      expect(await brokenIn(page, ".tabs code")).toEqual([]);
    }
    if (width >= 960) expect(await page.locator("nav a:target-current").count()).toBe(1);
  });

  it("has contents on a phone that open from everywhere and close, and a first call whose lines fit", async () => {
    const { page } = await openPage(`${ORIGIN}#createPet-body`, { viewport: { width: 390, height: 844 } });
    const contents = page.getByRole("link", { name: "Contents", exact: true });
    const bar = await boxOf(page, ".contents");
    expect(bar.y).toBe(0);
    expect((await boxOf(page, "#createPet-body")).y).toBeGreaterThanOrEqual(bar.height);
    expect(await page.locator("#contents").isVisible()).toBe(false);
    await contents.click();
    expect((await boxOf(page, "#contents")).y).toBeLessThan(24);
    await page.locator("#contents").getByRole("link", { name: "First call" }).click();
    expect(await page.locator("#contents").isVisible()).toBe(false);
    expect(await brokenIn(page, "section:has(#first-call) [open] code")).toEqual([]);
  });

  it.each([
    { origin: ELSEWHERE, address: ELSEWHERE.replace("http:", "https:"), key: PLACEHOLDERS.key },
    { origin: ORIGIN, address: ORIGIN, key: ORIGIN === ELSEWHERE ? PLACEHOLDERS.key : "local-development-key" },
  ])("has, at $origin, the address $address and the key $key", async ({ origin, address, key }) => {
    const { page } = await openPage(origin);
    await expectFilledIn(page, { address, key });
    await page.evaluate(OPEN_FORMS);
    const field = page.getByLabel("API key").first();
    expect(await field.inputValue()).toBe(key.replace(PLACEHOLDERS.key, ""));
    await field.fill("key");
    const [request] = await Promise.all([
      page.waitForRequest(/\/v1\//),
      page.getByRole("button", { name: "Send", exact: true }).first().click(),
    ]);
    expect(request.url()).toBe(`${address}/v1/pets`);
  });

  it("is complete without JavaScript: placeholders, every example in every language, and the description", async () => {
    const { page } = await openPage(ORIGIN, { javaScriptEnabled: false });
    await expectFilledIn(page, PLACEHOLDERS);
    expect(await shown(page)).toEqual(all("curl"));
    expect(await page.locator("section > details, button").count()).toBe(0);
    const plain = (text: string) => text.replaceAll(/[`\s]/g, "");
    const text = plain(await page.locator("main").innerText());
    const missing: string[] = [];
    JSON.stringify([description.paths, description.components], (keyword, value) => {
      if (["Allow", "Worker-Version"].includes(keyword)) return; // Callers do not need them.
      if (keyword === "description" && !text.includes(plain(value))) missing.push(value);
      return typeof value === "bigint" ? String(value) : value;
    });
    expect(missing).toEqual([]);
    for (const tab of await page.locator("summary", { hasText: "Python" }).all()) await tab.click();
    expect(await shown(page)).toEqual(all("Python"));
  });
});
