// The forms of the operations, which send requests. The API key is kept in memory only. A body is shown as text, so
// that every integer is exact, and no name that another caller has chosen becomes a part of the page.

import { element, IS_LOCAL, LOCAL_KEY, ORIGIN } from "./page.js";

const TIMEOUT = 30; // seconds
const PLAIN = { autocomplete: "off", autocapitalize: "off", spellcheck: false };
const IDEMPOTENCY_KEY = "Idempotency-Key";
const KEY = /^[\w.~+/-]+=*$/; // RFC 6750
const keys = []; // the fields for the API key, which all have the same value
let requestCount = 0; // on their way, from all forms

for (const line of document.querySelectorAll("[data-request]")) {
  const section = line.parentElement;
  const request = JSON.parse(line.dataset.request);
  const details = element("details", {}, element("summary", {}, "Send a request"));
  if (request.method !== "GET") {
    details.append(element("p", {}, "This request changes the store, and animals cannot be deleted."));
  }
  details.append(formFor(section.querySelector("h2").id, request));
  section.querySelector("h3").before(details);
}

function formFor(id, request) {
  const key = element("input", { ...PLAIN, className: "key", value: IS_LOCAL ? LOCAL_KEY : "" });
  key.oninput = () => {
    for (const other of keys) other.value = key.value;
  };
  keys.push(key);
  const parameters = request.fields.map(({ name, place, required = false, hint, values }) => {
    const options = ["", ...(values ?? [])].map((value) => element("option", {}, value));
    const control = values ? element("select", {}, ...options) : element("input", PLAIN);
    return { name, place, required, hint, control };
  });
  const fields = [{ name: "API key", required: true, hint: "required", control: key }, ...parameters];
  if (request.body) {
    const rows = request.body.split("\n").length;
    const control = element("textarea", { ...PLAIN, rows, value: request.body });
    fields.push({ name: "JSON", place: "body", required: true, hint: "body · required", control });
  }
  for (const { required, control } of fields) control.required = required;
  const labels = fields.map(({ name, hint, control }) =>
    element("label", {}, `${name} `, element("small", {}, hint), control),
  );
  const send = element("button", {}, "Send");
  const status = element("output");
  const response = element("pre", { tabIndex: 0, role: "region", ariaLabel: "Response" });
  const form = element("form", { noValidate: true }, ...labels, send, status, response);
  const fill = element("button", { type: "button", ariaLabel: `New ${IDEMPOTENCY_KEY}` }, "New");
  const idempotencyKey = fields.find(({ name }) => name === IDEMPOTENCY_KEY)?.control;
  let made; // the newest key that was filled in
  let added; // the newest key with which something was added
  let isSending = false;
  if (idempotencyKey) {
    fill.onclick = () => (idempotencyKey.value = made = randomKey());
    fill.onclick();
    const row = element("p", { className: "row" });
    idempotencyKey.parentElement.replaceWith(row);
    row.append(idempotencyKey.parentElement, fill);
  }
  form.oninput = ({ target }) => {
    // What was changed is a new animal. A key that the caller typed stays.
    const isOfAnimal = target !== idempotencyKey && target !== key;
    if (made && made === added && made === idempotencyKey.value && isOfAnimal) fill.onclick();
  };

  /** Nothing that a request depends on changes while it is on its way. A disabled button would lose the focus. */
  function lock(isLocked) {
    isSending = isLocked;
    requestCount += isLocked ? 1 : -1;
    for (const { control } of fields) control[control.matches("select") ? "disabled" : "readOnly"] = isLocked;
    for (const other of keys) other.readOnly = requestCount > 0;
    fill.disabled = isLocked;
    send.ariaDisabled = isLocked;
  }

  function report(outcome, ...text) {
    status.className = outcome;
    status.replaceChildren(...text);
  }

  form.onsubmit = async (event) => {
    event.preventDefault();
    if (isSending) return;
    response.textContent = "";
    const problem = problemOf(fields, key);
    if (problem) {
      report("failure", problem.text);
      return problem.control.focus();
    }
    lock(true);
    report("", "Sending…");
    const sent = idempotencyKey?.value;
    try {
      const answer = await fetch(...fetchArguments(request, fields, key.value));
      const names = [...request.headers, "cf-ray"].filter((name) => answer.headers.has(name));
      const headers = names.map((name) => `${name}: ${answer.headers.get(name)}\n`);
      const body = await answer.text();
      response.textContent = `${headers.join("")}\n${body || "(empty body)"}`;
      const isUnknown = answer.status >= 500 && !/"code":"/.test(body);
      report(
        answer.ok ? "success" : "failure",
        linkTo(answer.status, id),
        sent ? `, sent with the ${IDEMPOTENCY_KEY} ${sent}` : "",
        answer.ok && sent ? ". To add the same animal once more, press New." : "",
        isUnknown ? `. ${adviceFor(request, sent)}` : "",
      );
      if (answer.ok) added = sent; // After a failure, the same key retries.
    } catch ({ name }) {
      const timedOut = `There was no response within ${TIMEOUT} seconds.`;
      const failed = "The service cannot be reached, or the connection was lost.";
      report("failure", `${name === "TimeoutError" ? timedOut : failed} ${adviceFor(request, sent)}`);
    } finally {
      lock(false);
    }
  };
  return form;
}

/** The first problem of these fields, if any. */
function problemOf(fields, key) {
  for (const { name, place, required, control } of fields) {
    const { value } = control;
    if (required && !value.trim()) return { control, text: `${name} is required.` };
    if (control === key && !KEY.test(value)) {
      const text = "This API key cannot be sent: it may have letters, digits and - . _ ~ + /, and = at its end.";
      return { control, text };
    }
    if (place === "header" && /[^ -~]/.test(value)) {
      return { control, text: `The ${name} may have only printable ASCII characters.` };
    }
  }
}

/** The status, with a link to its description if there is one. HTTP/2 has no text for a status. */
function linkTo(status, operation) {
  const id = [`${operation}-${status}`, `error-${status}`].find((id) => document.getElementById(id));
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
  return idempotencyKey
    ? `The animal may have been added: send the same again with the same ${IDEMPOTENCY_KEY}.`
    : "The animal may have been added: list the newest animals before you send it again.";
}

/** The arguments of fetch. Empty fields are not sent. */
function fetchArguments({ method, path, body: example }, fields, key) {
  const headers = new Headers({ Authorization: `Bearer ${key}` });
  const query = new URLSearchParams();
  let [url, body] = [path];
  for (const { name, place, control } of fields.filter(({ control }) => control.value)) {
    const { value } = control;
    if (place === "path") url = url.replace(`{${name}}`, () => encodeURIComponent(value));
    if (place === "query") query.append(name, value);
    if (place === "header") headers.set(name, value);
    if (place === "body") body = value;
  }
  if (example) headers.set("Content-Type", "application/json");
  if (query.size > 0) url += `?${query}`;
  return [ORIGIN + url, { method, headers, body, signal: AbortSignal.timeout(TIMEOUT * 1000) }];
}
