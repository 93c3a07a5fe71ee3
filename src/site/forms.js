// The forms of the operations, which send requests. The API key is kept in memory only. A body is shown as text, so that every
// integer is exact.

import { element, IS_LOCAL } from "./page.js";

const TIMEOUT = 30_000; // milliseconds
const PLAIN = { autocomplete: "off", autocapitalize: "off", spellcheck: false };
const keys = [];

for (const section of document.querySelectorAll("section[data-request]")) {
  const request = JSON.parse(section.dataset.request);
  const key = element("input", { ...PLAIN, className: "key", value: IS_LOCAL ? "local-key" : "" });
  key.oninput = () => {
    for (const other of keys) other.value = key.value;
  };
  keys.push(key);
  const details = element("details", {}, element("summary", {}, "Send a request"));
  if (request.method !== "GET") {
    details.append(element("p", {}, "This request changes the store, and animals cannot be deleted."));
  }
  // The key is outside the form, so that pressing Enter there sends nothing.
  details.append(element("label", {}, "API key", key), formFor(request, key));
  section.querySelector("h3").before(details);
}

function formFor(request, key) {
  const fields = request.fields.map(({ name, in: place, required = false, schema }) => {
    const options = ["", ...(schema.enum ?? [])].map((value) => element("option", {}, value));
    const control = schema.enum ? element("select", {}, ...options) : element("input", PLAIN);
    return { name, place, control: Object.assign(control, { required }) };
  });
  if (request.body) {
    fields.push({
      name: "JSON",
      place: "body",
      control: element("textarea", { ...PLAIN, rows: request.body.split("\n").length, value: request.body }),
    });
  }
  const labels = fields.map(({ name, place, control }) =>
    element("label", {}, `${name} `, element("small", {}, place), control),
  );
  const status = element("output");
  const response = element("pre");
  const form = element("form", {}, ...labels, element("button", {}, "Send"), status, response);
  let isSending = false;
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (isSending) return; // A disabled button would lose the focus.
    isSending = true;
    status.value = "Sending…";
    response.textContent = "";
    try {
      const answer = await fetch(...fetchArguments(request, fields, key.value));
      const names = [...request.headers, "cf-ray"].filter((name) => answer.headers.has(name));
      const headers = names.map((name) => `${name}: ${answer.headers.get(name)}\n`);
      response.textContent = `${headers.join("")}\n${await answer.text()}`;
      status.value = `Status ${answer.status}`; // HTTP/2 has no text for it.
    } catch (error) {
      status.value = `The request failed: ${error.message}`;
    }
    isSending = false;
  };
  return form;
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
