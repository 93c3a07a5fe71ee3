// Adds what the page can do without: this service's address and key, buttons that copy, one language for all examples,
// and a form for each operation. A response is shown as text, so that every integer is exact, and no name that a caller
// has chosen becomes a part of the page.

const TIMEOUT = 30; // seconds
const IDEMPOTENCY_KEY = "Idempotency-Key";
const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const LOCAL_KEY = "local-development-key"; // that of `npm run dev`
// An API key is never sent over plain HTTP, except on this machine.
const ORIGIN = IS_LOCAL ? location.origin : `https://${location.host}`;
const keys = []; // the fields for the API key, which is kept nowhere else, and is the same in all forms

/** A new element with these properties and children. */
function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

for (const code of document.querySelectorAll("pre > code")) {
  code.innerHTML = code.innerHTML.replace("https://&lt;your address&gt;", ORIGIN);
  if (IS_LOCAL) code.innerHTML = code.innerHTML.replace("&lt;your API key&gt;", LOCAL_KEY);
  if (!code.className || !navigator.clipboard) continue; // A response, or a page without HTTPS.
  const button = element("button", { type: "button", ariaLive: "polite" }, "Copy");
  button.onclick = async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };
  code.before(button);
}

const tabs = [...document.querySelectorAll(".tabs summary")];

/** Opens every example in this language. The browser closes the other languages, because they have the same name. */
function show(language) {
  for (const tab of tabs) if (tab.textContent === language) tab.parentElement.open = true;
}

for (const tab of tabs) {
  tab.onclick = (event) => {
    event.preventDefault();
    const { top } = tab.getBoundingClientRect();
    show(tab.textContent);
    window.scrollBy(0, tab.getBoundingClientRect().top - top); // The tab stays where it was clicked.
    localStorage.setItem("language", tab.textContent);
  };
}
show(localStorage.getItem("language"));

for (const line of document.querySelectorAll(".request")) {
  const section = line.closest("section");
  const { id } = section.querySelector("h2");
  const itemsOf = (list) =>
    Array.from(section.querySelectorAll(`#${id}-${list} + ul > li:has(small)`), (item) => ({
      name: item.querySelector("strong").textContent,
      facts: item.querySelector("small").textContent,
    }));
  const [method, path] = line.firstElementChild.textContent.split(" ");
  const [, body] = /-d '(.*)'/s.exec(section.querySelector(".language-sh").textContent) ?? [];
  const [success] = itemsOf("responses");
  const form = formFor({ id, method, path: `/v1${path}`, parameters: itemsOf("parameters"), body, success });
  section.querySelector("h3").before(form);
}

/** A form as the page shows the operation: its parameters except the bookmark, and the body that its example sends. */
function formFor({ id, method, path, parameters, body, success }) {
  const plain = { autocomplete: "off", autocapitalize: "off", spellcheck: false };
  const apiKey = element("input", { ...plain, className: "key", value: IS_LOCAL ? LOCAL_KEY : "" });
  // RFC 6750, with what may have been copied around it.
  apiKey.pattern = "\\s*([Bb]earer\\s+)?[\\w.~+\\/\\-]+=*\\s*";
  apiKey.title = "letters, digits and -._~+/, and = at its end";
  apiKey.oninput = () => {
    for (const other of keys) other.value = apiKey.value;
  };
  keys.push(apiKey);
  const json = element("textarea", { ...plain, rows: 3, value: body ?? "" });
  const fields = [
    { name: "API key", facts: "required", control: apiKey },
    ...parameters
      .filter(({ name }) => !["Authorization", "x-d1-bookmark"].includes(name))
      .map((parameter) => ({ ...parameter, control: controlFor(parameter.facts, plain) })),
    ...(body ? [{ name: "JSON", facts: "body · required", control: json }] : []),
  ];
  const labels = fields.map(({ name, facts, control }) => {
    control.required = facts.includes("required");
    return element("label", {}, `${name} `, element("small", {}, facts), control);
  });
  const send = element("button", {}, "Send");
  const controls = element("fieldset", {}, ...labels, send);
  const status = element("output");
  const response = element("code");
  const region = element("pre", { tabIndex: 0, role: "region", ariaLabel: `Response to ${id}` }, response);
  const form = element("form", {}, controls, status, region);
  const details = element("details", { className: "form" }, element("summary", {}, "Send a request"), form);

  function report(outcome, ...text) {
    status.className = outcome;
    status.replaceChildren({ success: "✓ Success: ", failure: "✗ Failure: " }[outcome] ?? "", ...text);
  }

  const idempotencyKey = fields.find(({ name }) => name === IDEMPOTENCY_KEY)?.control;
  // Not randomUUID, which browsers have only with HTTPS.
  const renew = () => {
    idempotencyKey.value = crypto.getRandomValues(new BigUint64Array(2)).join("-");
  };
  const mayBeStored = () =>
    idempotencyKey.value
      ? ` Send the same again with the same ${IDEMPOTENCY_KEY}: it adds no second animal.`
      : " The animal may have been added.";
  if (idempotencyKey) renew();
  // A create survives a reload, without the API key, until its outcome is known.
  const kept = sessionStorage.getItem(id);
  if (kept) {
    [idempotencyKey.value, json.value] = JSON.parse(kept);
    details.open = true;
    report("failure", "The outcome is not known.", mayBeStored());
  }

  form.onsubmit = async (event) => {
    event.preventDefault();
    const before = sessionStorage.getItem(id);
    if (idempotencyKey) sessionStorage.setItem(id, JSON.stringify([idempotencyKey.value, json.value]));
    report("", "Sending…");
    response.replaceChildren();
    const sending = fetchText(method, path, fields);
    controls.disabled = true;
    const { problem, code, headers, text } = await sending;
    controls.disabled = false;
    if (document.activeElement === document.body) send.focus();

    const value = parsed(text);
    const isOfKind = success.facts.startsWith("Array") ? Array.isArray(value) : value?.id !== undefined;
    const isSuccess = code === Number(success.name) && isOfKind;
    const isRejected = (code >= 400 && code < 500) || (value?.code && text.includes("not carried out"));
    const isOurs = isSuccess || value?.code !== undefined;
    // The description of the status, or that of all errors. HTTP/2 has no text for a status.
    const about = isOurs && [`${id}-${code}`, `error-${code}`].find((id) => document.getElementById(id));
    const link = element("a", { href: `#${about || "errors"}` }, `Status ${code}`);
    const end = problem || isOurs ? "." : ", but not a complete response of the service.";
    report(isSuccess ? "success" : "failure", problem ?? link, end);
    if (isSuccess || (isRejected && !before)) sessionStorage.removeItem(id);
    else if (isRejected) sessionStorage.setItem(id, before);
    else if (idempotencyKey) status.append(mayBeStored());
    if (isSuccess && idempotencyKey) {
      renew();
      status.append(` The next animal has a new ${IDEMPOTENCY_KEY}.`);
    }
    if (!problem) response.append(...linked(headers, fields, form), `\n${text || "(empty body)"}`);
  };
  return details;
}

function controlFor(facts, properties) {
  const [, values] = /one of ([^·]+)/.exec(facts) ?? [];
  if (values) return element("select", {}, ...["", ...values.trim().split(", ")].map((value) => new Option(value)));
  return element("input", { ...properties, pattern: facts.startsWith("header") ? "[ -~]*" : ".*" });
}

/** Sends what is filled in. Returns the response with its text or, if there is none, the `problem`. */
async function fetchText(method, path, fields) {
  const headers = new Headers();
  const query = new URLSearchParams();
  let [url, body] = [path];
  for (const { name, facts, control } of fields.filter(({ control }) => control.value)) {
    const { value } = control;
    if (name === "API key") headers.set("Authorization", `Bearer ${value.trim().replace(/^bearer\s+/i, "")}`);
    if (facts.startsWith("path")) url = url.replace(`{${name}}`, () => encodeURIComponent(value));
    if (facts.startsWith("query")) query.append(name, value);
    if (facts.startsWith("header")) headers.set(name, value);
    if (facts.startsWith("body")) body = value;
  }
  if (body) headers.set("Content-Type", "application/json");
  if (query.size > 0) url += `?${query}`;
  try {
    const signal = AbortSignal.timeout(TIMEOUT * 1000);
    const response = await fetch(ORIGIN + url, { method, headers, body, redirect: "manual", signal });
    if (response.type === "opaqueredirect") return { problem: "The response is a redirect, which is not followed" };
    return { code: response.status, headers: [...response.headers], text: await response.text() };
  } catch ({ name }) {
    if (name === "TimeoutError") return { problem: `There was no response within ${TIMEOUT} seconds` };
    return { problem: "There was no connection, or it was lost" };
  }
}

/** The headers as text. The URL of the next page, if there is one, sends the form with its parameters. */
function linked(headers, fields, form) {
  const lines = headers.map(([name, value]) => `${name}: ${value}\n`).join("");
  const [, before, url, after] = /^(.*\nlink: <)([^>]+)(>; rel="next".*)$/s.exec(`\n${lines}`) ?? [];
  if (!url) return [lines];
  const follow = element("a", { href: url }, url);
  follow.onclick = (event) => {
    event.preventDefault();
    const query = new URL(url).searchParams;
    for (const { name, facts, control } of fields) if (facts.startsWith("query")) control.value = query.get(name) ?? "";
    form.requestSubmit();
  };
  return [before.trimStart(), follow, after];
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {}
}
