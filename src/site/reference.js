// The API reference: Scalar, configured to send no request to another origin. This file adds what Scalar lacks: access by
// keyboard and screen reader, and examples in the guide that can be copied and shown in another language.

import { createApiReference } from "/scalar/standalone.esm.js";

const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const LOCAL_KEY = "local-key";
const LANGUAGE = "animal-store-language"; // Where a reload finds the language of the guide's examples.
// The code for these clients does not run as it is: it needs a package, a project, a compiler, or (python3) a User-Agent.
const HIDDEN_CLIENTS =
  `aiohttp axios c clojure csharp dart fsharp go http httpie httpx_async httpx_sync java jquery julia kotlin
  node objc ocaml ofetch php powershell python3 r requests ruby rust swift wget xhr`.split(/\s+/);

/** The description as the reference shows it. The published one does not change. */
async function loadDescription() {
  const response = await fetch("/openapi.json");
  // The bounds of an int64 would be shown rounded, so they are left out. The guide states them.
  const isRounded = (value) => Number.isInteger(value) && !Number.isSafeInteger(value);
  const description = JSON.parse(await response.text(), (_, value) => (isRounded(value) ? undefined : value));
  // Scalar's request client sends each optional parameter that has a default or an enum, unless its example is empty. The
  // schema's empty list of examples hides that one.
  const parameters = Object.values(description.paths)
    .flatMap(Object.values)
    .flatMap((operation) => operation.parameters);
  for (const parameter of parameters.filter(({ required }) => !required)) {
    const schema = description.components.schemas[parameter.schema.$ref?.split("/").at(-1)] ?? parameter.schema;
    schema.examples = [];
    parameter.example = "";
  }
  const { info } = description;
  const language = sessionStorage.getItem(LANGUAGE) ?? "curl";
  info.description = info.description
    .replaceAll("http://localhost:8787", location.origin)
    .replaceAll("](#", "](#description/") // Scalar's name for the section.
    .replaceAll("<details open>", "<details>")
    .replaceAll(`<details><summary>${language}<`, `<details open><summary>${language}<`);
  if (!IS_LOCAL) info.description = info.description.replace(`=${LOCAL_KEY}`, "='<your key>'");
  return description;
}

/** Adds the buttons, names, states and keyboard access that Scalar's elements lack (WCAG 2.1: 2.1.1, 4.1.2). */
function completeElements() {
  const examples = ".introduction-description pre:not(details ~ pre) > code:not(:has(button))";
  for (const code of document.querySelectorAll(examples)) {
    const { textContent } = code;
    const copy = Object.assign(document.createElement("button"), { textContent: "Copy" });
    copy.onclick = async () => {
      await navigator.clipboard.writeText(textContent);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    };
    code.prepend(copy);
  }
  for (const button of document.querySelectorAll("button.group\\/copy-button:not([aria-label])")) {
    button.ariaLabel = "Copy";
    button.removeAttribute("aria-controls"); // In the request client, it refers to an element that does not exist.
  }
  for (const editor of document.querySelectorAll(".cm-content:not([aria-label])")) {
    editor.ariaLabel = "JSON";
    editor.tabIndex = 0; // A response is not editable, but can be scrolled.
  }
  for (const button of document.querySelectorAll("button[role=none]")) button.removeAttribute("role");
  for (const field of document.querySelectorAll("[role=combobox]:not([aria-expanded])")) field.ariaExpanded = "false";
  // Their only text is their value, which is empty at first.
  for (const menu of document.querySelectorAll("td [aria-haspopup=menu]")) menu.title = "Value";
}

/** A click on a language shows all examples of the guide in it, without moving the one that was clicked. */
function chooseLanguage(event) {
  const chosen = event.target.closest(".introduction-description summary");
  if (!chosen) return;
  event.preventDefault();
  sessionStorage.setItem(LANGUAGE, chosen.textContent);
  const { top } = chosen.getBoundingClientRect();
  for (const summary of document.querySelectorAll(".introduction-description summary")) {
    summary.parentElement.open = summary.textContent === chosen.textContent;
  }
  window.scrollBy({ top: chosen.getBoundingClientRect().top - top, behavior: "instant" });
}

/** A click on Send scrolls to the response, which is below the request on a narrow screen. */
function showResponse({ target }) {
  if (!target.closest("[data-addressbar-action=send]")) return;
  document.querySelector(".scalar-client section[aria-label=Response]").scrollIntoView();
}

/** When the request client opens, it shows the request, although it may have shown a response before. */
function showRequest({ target, relatedTarget }) {
  const client = target.closest(".scalar-client");
  if (!client || !relatedTarget || client.contains(relatedTarget)) return;
  client.querySelector("section[aria-label^=Request]").scrollIntoView();
}

/** In the search, Enter leads to the first result, unless a result is already selected. */
function selectFirst({ key, target }) {
  if (key !== "Enter" || !target.matches("[role=search] input:not([aria-activedescendant])")) return;
  target.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
}

document.addEventListener("click", chooseLanguage);
document.addEventListener("click", showResponse);
document.addEventListener("focusin", showRequest);
document.addEventListener("keydown", selectFirst, { capture: true });
new MutationObserver(completeElements).observe(document.body, { childList: true, subtree: true });

// Scalar would put its own fragment after this one, at each reload.
if (location.hash.startsWith("#description/introduction")) history.replaceState(null, "", location.pathname);

createApiReference("#reference", {
  content: await loadDescription(),
  documentDownloadType: "none",
  authentication: { securitySchemes: { apiKey: { token: IS_LOCAL ? LOCAL_KEY : "" } } },
  hiddenClients: HIDDEN_CLIENTS,
  withDefaultFonts: false,
  hideModels: true,
  orderSchemaPropertiesBy: "preserve",
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  onLoaded: () => document.getElementById("summary").remove(),
});
