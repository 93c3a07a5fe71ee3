// Adds what the page can do without: this service's address and key, buttons that copy, one language for all examples,
// and the forms, which the build has made from the description (scripts/build/reference.ts). A response is shown as
// text, so that every integer is exact, and no name that a caller has chosen becomes a part of the page.

const TIMEOUT = 30; // seconds
const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const { localKey: LOCAL_KEY } = document.body.dataset; // that of `npm run dev`
// An API key is never sent over plain HTTP, except on this machine.
const ORIGIN = IS_LOCAL ? location.origin : `https://${location.host}`;

/** A new element with these properties and this text. */
function element(name, properties, text) {
  return Object.assign(document.createElement(name), properties, { textContent: text });
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

// Opens every example in a language. The browser closes the other languages, because they have the same name.
for (const tab of tabs) {
  tab.onclick = (event) => {
    event.preventDefault();
    const { top } = tab.getBoundingClientRect();
    for (const { textContent, parentElement } of tabs) if (textContent === tab.textContent) parentElement.open = true;
    window.scrollBy(0, tab.getBoundingClientRect().top - top); // The tab stays where it was clicked.
  };
}

// The menu of a narrow screen closes after a choice, which Chromium would not follow if it were closed at once.
const menu = document.querySelector("header details");
menu.onclick = ({ target }) => target.closest("a") && setTimeout(showTarget);

function showTarget() {
  menu.open = false;
  document.querySelector(":target")?.scrollIntoView();
}

const apiKeys = document.querySelectorAll(".key");

/** The API key is the same in all forms, and kept nowhere else. */
function setApiKey(value = IS_LOCAL ? LOCAL_KEY : "") {
  for (const field of apiKeys) field.value = value;
}

for (const field of apiKeys) field.oninput = () => setApiKey(field.value);
setApiKey();
// For "Back", a browser may have kept the page itself.
addEventListener("pageshow", ({ persisted }) => persisted && setApiKey());

for (const details of document.querySelectorAll(".form")) enable(details);

/** Makes a form send its operation, and shows it. */
function enable(details) {
  const [form, controls, send, output, response] = ["form", "fieldset", "button", "output", "pre > code"].map(
    (selector) => details.querySelector(selector),
  );
  const [apiKey, ...fields] = details.querySelectorAll("[data-in]");
  const { "Idempotency-Key": idempotencyKey, JSON: json } = form.elements;
  if (idempotencyKey) {
    let generatedKey = newKey();
    idempotencyKey.value = generatedKey;
    // It belongs to what is sent, so sending that again adds nothing, whatever happened. What a person typed stays.
    json.oninput = () => {
      if (idempotencyKey.value === generatedKey) idempotencyKey.value = generatedKey = newKey();
    };
  }

  form.onsubmit = async (event) => {
    event.preventDefault();
    output.className = "";
    output.replaceChildren("Sending…");
    response.replaceChildren();
    const sending = fetchText(details.dataset, [apiKey, ...fields]);
    controls.disabled = true;
    const { problem, isUnsent, status, headers, text } = await sending;
    controls.disabled = false;
    if (document.activeElement === document.body) send.focus();
    const [, code] = /^\{"code":"(\w+)"/.exec(text) ?? []; // Every error of the service begins with its code.
    const success = `${details.dataset.operation}-${status}`;
    const about = [success, `error-${code}`, "errors"].find((id) => document.getElementById(id));
    output.className = about === success ? "success" : "failure";
    output.replaceChildren(element("strong", {}, about === success ? "✓ Success" : "✗ Failure"), ": ");
    if (problem) output.append(problem);
    else {
      // HTTP/2 has no text for a status.
      output.append(element("a", { href: `#${about}` }, `status ${status}`), ".");
      // Lines break between members, as in the examples.
      for (const part of text.split(/(?<=,)(?=["{])/)) response.append(part, element("wbr"));
      response.append(`${text ? "" : "(empty body)"}\n\n`, ...linked(headers, fields, form));
    }
    const isRejected = code === "closed" || (code && status < 500);
    if (idempotencyKey?.value && !isUnsent && !isRejected)
      output.append(" Sending this again with the same Idempotency-Key adds no second animal.");
    // A long response leaves the window, but not its status.
    for (const shown of [response, output]) shown.scrollIntoView({ block: "nearest" });
  };
  details.hidden = false;
}

/** A new Idempotency-Key. Not from randomUUID, which browsers have only with HTTPS. */
function newKey() {
  return crypto.getRandomValues(new BigUint64Array(2)).join("-");
}

/** Sends what is filled in. Returns the response with its text or, if it is not complete, the `problem`. */
async function fetchText({ method, path }, fields) {
  // A browser would replace what is not Unicode.
  const malformed = fields.find(({ value }) => !value.isWellFormed());
  if (malformed) return { problem: `${malformed.name} is not valid Unicode, so nothing was sent.`, isUnsent: true };
  const headers = new Headers();
  const query = new URLSearchParams();
  let [url, body] = [path];
  for (const { name, value, dataset } of fields) {
    if (!value) continue;
    if (name === "Authorization") headers.set(name, `Bearer ${value.trim().replace(/^bearer\s+/i, "")}`);
    else if (dataset.in === "header") headers.set(name, value);
    else if (dataset.in === "path") url = url.replace(`{${name}}`, () => encodeURIComponent(value));
    else if (dataset.in === "query") query.append(name, value);
    else body = value;
  }
  if (body) headers.set("Content-Type", "application/json");
  if (query.size > 0) url += `?${query}`;
  try {
    const signal = AbortSignal.timeout(TIMEOUT * 1000);
    const response = await fetch(ORIGIN + url, { method, headers, body, redirect: "manual", signal });
    if (response.type === "opaqueredirect") return { problem: "the response is a redirect, which is not followed." };
    return { status: response.status, headers: [...response.headers], text: await response.text() };
  } catch ({ name }) {
    const within = name === "TimeoutError" ? ` within ${TIMEOUT} seconds` : "";
    return { problem: `there was no complete response${within}. The request may have arrived.` };
  }
}

/** The headers as text. The URL of the next page, if there is one, sends the form with its parameters. */
function linked(headers, fields, form) {
  const useful = headers.filter(([name]) => !name.startsWith("access-control-")); // Those are for browsers.
  const lines = useful.map(([name, value]) => `${name}: ${value}\n`).join("");
  const [, before, url, after] = /^(.*\nlink: <)([^>]+)(>; rel="next".*)$/s.exec(`\n${lines}`) ?? [];
  if (!url) return [lines];
  const follow = element("a", { href: url }, url);
  follow.onclick = (event) => {
    event.preventDefault();
    const query = new URL(url).searchParams;
    for (const field of fields) if (field.dataset.in === "query") field.value = query.get(field.name) ?? "";
    form.requestSubmit();
  };
  return [before.trimStart(), follow, after];
}
