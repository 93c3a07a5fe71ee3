// The forms of the operations, which send requests. The API key is kept in memory only. A body is shown as text, so
// that every integer is exact, and no name that another caller has chosen becomes a part of the page.

import { element, IS_LOCAL } from "./page.js";

const TIMEOUT = 30_000; // milliseconds
const PLAIN = { autocomplete: "off", autocapitalize: "off", spellcheck: false };
const IDEMPOTENCY_KEY = "Idempotency-Key";
const KEY = /^[\w.~+/-]*=*$/; // RFC 6750, or none, which gets a 401 that says what is missing.
const keys = [];

for (const title of document.querySelectorAll("[data-request]")) {
  const section = title.parentElement;
  const request = JSON.parse(title.dataset.request);
  const key = element("input", { ...PLAIN, className: "key", value: IS_LOCAL ? "local-key" : "" });
  key.oninput = () => {
    key.value = key.value.replace(/^\s*Bearer\s+/i, "");
    for (const other of keys) other.value = key.value;
  };
  keys.push(key);
  const details = element("details", {}, element("summary", {}, "Send a request"));
  if (request.method !== "GET") {
    details.append(element("p", {}, "This request changes the store, and animals cannot be deleted."));
  }
  // The key is outside the form, so that pressing Enter there sends nothing.
  details.append(label("API key", "required", key), formFor(request, key));
  section.querySelector("h3").before(details);
}

function label(name, hint, control) {
  return element("label", {}, `${name} `, element("small", {}, hint), control);
}

function formFor(request, key) {
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
  if (named(IDEMPOTENCY_KEY)) {
    const fill = element("button", { type: "button" }, `New ${IDEMPOTENCY_KEY}`);
    fill.onclick = () => (named(IDEMPOTENCY_KEY).value = crypto.randomUUID());
    named(IDEMPOTENCY_KEY).parentElement.after(fill);
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
    key.value = key.value.trim();
    if (!KEY.test(key.value)) {
      status.value = "This API key cannot be sent: it may have letters, digits and - . _ ~ + /, and = at its end.";
      return key.focus();
    }
    let call;
    try {
      call = fetchArguments(request, fields, key.value);
    } catch (error) {
      status.value = `This request cannot be sent: ${error.message}`;
      return;
    }
    isSending = true;
    status.value = "Sending…";
    try {
      const answer = await fetch(...call);
      const names = [...request.headers, "cf-ray"].filter((name) => answer.headers.has(name));
      const headers = names.map((name) => `${name}: ${answer.headers.get(name)}\n`);
      const body = await answer.text();
      response.textContent = `${headers.join("")}\n${formatted(body)}`;
      status.value = `Status ${answer.status}`; // HTTP/2 has no text for it.
      if (answer.status >= 500 && !/"code":"/.test(body)) status.value += adviceFor(request, named(IDEMPOTENCY_KEY));
      // Only its number is used: the URL could lead elsewhere, and the key with it.
      const [, after = ""] = /[?&]after=(-?\d+)\D.*rel="next"/.exec(answer.headers.get("Link")) ?? [];
      if (!after && document.activeElement === next) send.focus();
      Object.assign(next, { value: after, hidden: !after });
    } catch (error) {
      status.value = `The request failed: ${error.message}${adviceFor(request, named(IDEMPOTENCY_KEY))}`;
    }
    isSending = false;
  };
  return form;
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
function fetchArguments({ method, path }, fields, key) {
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
  if (body) headers.set("Content-Type", "application/json");
  if (query.size > 0) url += `?${query}`;
  return [url, { method, headers, body, signal: AbortSignal.timeout(TIMEOUT) }];
}
