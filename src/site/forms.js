// The forms of the operations, which send requests. The API key is kept in memory only. A body is shown as text, so
// that every integer is exact, and no name that another caller has chosen becomes a part of the page.

import { element, IS_LOCAL } from "./page.js";

const TIMEOUT = 30_000; // milliseconds
const PLAIN = { autocomplete: "off", autocapitalize: "off", spellcheck: false };
const IDEMPOTENCY_KEY = "Idempotency-Key";
const KEY = /^[\w.~+/-]*=*$/; // RFC 6750, or none, which gets a 401 that says what is missing.
/** What is often copied with a key: the rest of its header, quotes and white space. */
const AROUND_KEY = /^(?:[\s`\p{Quotation_Mark}]|Authorization:|Bearer\s)+|[\s`\p{Quotation_Mark}]+$/giu;
const keys = [];

for (const title of document.querySelectorAll("[data-request]")) {
  const section = title.parentElement;
  const request = JSON.parse(title.dataset.request);
  const key = element("input", { ...PLAIN, className: "key", value: IS_LOCAL ? "local-key" : "" });
  key.oninput = () => {
    const bare = key.value.replaceAll(AROUND_KEY, "");
    for (const other of keys) other.value = bare;
  };
  keys.push(key);
  const details = element("details", {}, element("summary", {}, "Send a request"));
  if (request.method !== "GET") {
    details.append(element("p", {}, "This request changes the store, and animals cannot be deleted."));
  }
  // The key is outside the form, so that pressing Enter there sends nothing.
  details.append(label("API key", "required", key), formFor(title.id, request, key));
  section.querySelector("h3").before(details);
}

function label(name, hint, control) {
  return element("label", {}, `${name} `, element("small", {}, hint), control);
}

function formFor(id, request, key) {
  const fields = request.fields.map(({ name, place, required = false, hint, values }) => {
    const options = ["", ...(values ?? [])].map((value) => element("option", {}, value));
    const control = values ? element("select", {}, ...options) : element("input", PLAIN);
    return { name, place, hint, control: Object.assign(control, { required }) };
  });
  if (request.body) {
    const rows = request.body.split("\n").length;
    const control = element("textarea", { ...PLAIN, rows, value: request.body });
    fields.push({ name: "JSON", place: "body", hint: "body · required", control });
  }
  const named = (name) => fields.find((field) => field.name === name)?.control;
  const labels = fields.map(({ name, hint, control }) => label(name, hint, control));
  const send = element("button", {}, "Send");
  const next = element("button", { type: "button", hidden: true }, "Next page");
  const status = element("output");
  const response = element("pre");
  const form = element("form", {}, ...labels, send, next, status, response);
  const idempotencyKey = named(IDEMPOTENCY_KEY);
  if (idempotencyKey) {
    idempotencyKey.value = randomKey();
    const fill = element("button", { type: "button", ariaLabel: `New ${IDEMPOTENCY_KEY}` }, "New");
    fill.onclick = () => (idempotencyKey.value = randomKey());
    const row = element("p", { className: "row" });
    idempotencyKey.parentElement.replaceWith(row);
    row.append(idempotencyKey.parentElement, fill);
  }
  next.onclick = () => {
    named("after").value = next.value;
    form.requestSubmit();
  };

  let isSending = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (isSending) return; // A disabled button would lose the focus.
    response.textContent = "";
    if (!KEY.test(key.value)) {
      status.value = "This API key cannot be sent: it may have letters, digits and - . _ ~ + /, and = at its end.";
      return key.focus();
    }
    const wrong = fields.find(({ place, control }) => place === "header" && /[^ -~]/.test(control.value));
    if (wrong) {
      status.value = `An ${wrong.name} may have only printable ASCII characters.`;
      return wrong.control.focus();
    }
    isSending = true;
    status.value = "Sending…";
    try {
      const answer = await fetch(...fetchArguments(request, fields, key.value));
      const names = [...request.headers, "cf-ray"].filter((name) => answer.headers.has(name));
      const headers = names.map((name) => `${name}: ${answer.headers.get(name)}\n`);
      const body = await answer.text();
      response.textContent = `${headers.join("")}\n${formatted(body) || "(empty body)"}`;
      const isUnknown = answer.status >= 500 && !/"code":"/.test(body);
      status.replaceChildren(linkTo(answer.status, id), isUnknown ? adviceFor(request, idempotencyKey) : "");
      if (answer.ok && idempotencyKey) idempotencyKey.value = randomKey(); // After a failure, the same one retries.
      // Only its number is used: the URL could lead elsewhere, and the key with it.
      const [, after = ""] = /[?&]after=(-?\d+)\D.*rel="next"/.exec(answer.headers.get("Link")) ?? [];
      if (!after && document.activeElement === next) send.focus();
      Object.assign(next, { value: after, hidden: !after });
    } catch (error) {
      status.value = `The request failed: ${error.message}${adviceFor(request, idempotencyKey)}`;
    }
    isSending = false;
  };
  return form;
}

/** The status, with a link to its description if there is one. HTTP/2 has no text for a status. */
function linkTo(status, operation) {
  const ids = [operation, "all-operations"].map((place) => `${place}-${status}`);
  const id = ids.find((id) => document.getElementById(id));
  return id ? element("a", { href: `#${id}` }, `Status ${status}`) : `Status ${status}`;
}

/** 128 random bits. Without HTTPS, browsers have no crypto.randomUUID. */
function randomKey() {
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What to do after a request that may have been carried out without a response from the service. */
function adviceFor({ method }, idempotencyKey) {
  if (method === "GET") return "";
  return idempotencyKey.value
    ? `. It may have been added: send it again with the same ${IDEMPOTENCY_KEY}.`
    : ". It may have been added: list the newest animals before you send it again.";
}

/** JSON with white space between its tokens. Any other text stays as it is. */
function formatted(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  let depth = 0;
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[\s\S]/g, (token) => {
    if ("[{".includes(token)) depth += 1;
    if ("]}".includes(token)) depth -= 1;
    const line = `\n${"  ".repeat(Math.max(depth, 0))}`;
    if ("[{,".includes(token)) return token + line;
    if ("]}".includes(token)) return line + token;
    return token === ":" ? ": " : token;
  });
}

/** The arguments of fetch. Empty fields are not sent. */
function fetchArguments({ method, path, body: example }, fields, key) {
  const headers = new Headers(key ? { Authorization: `Bearer ${key}` } : {});
  const query = new URLSearchParams();
  let [url, body] = [path];
  for (const { name, place, control } of fields.filter(({ control }) => control.value)) {
    const { value } = control;
    if (place === "path") url = url.replace(`{${name}}`, () => encodeURIComponent(value));
    if (place === "query") query.append(name, value);
    if (place === "header") headers.set(name, value);
    if (place === "body") body = value;
  }
  if (example) headers.set("Content-Type", "application/json"); // If the body is empty, the service says so.
  if (query.size > 0) url += `?${query}`;
  return [url, { method, headers, body, signal: AbortSignal.timeout(TIMEOUT) }];
}
