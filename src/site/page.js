// The API reference: Scalar, configured to send no request to another origin. This file adds what Scalar lacks for
// readers who use a screen reader or a keyboard.

import { createApiReference } from "/scalar/standalone.esm.js";

const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const LOCAL_KEY = "local-key";

/** The description as the page shows it. The published one does not change. */
async function loadDescription() {
  const response = await fetch("/openapi.json");
  // A JavaScript number would show the bounds of an int64 rounded, so they are left out. The guide states them.
  const description = JSON.parse(await response.text(), (key, value) =>
    ["minimum", "maximum"].includes(key) && !Number.isSafeInteger(value) ? undefined : value,
  );
  // Scalar's request client sends each optional parameter that has a default or an enum. An empty example prevents this.
  for (const { parameters } of Object.values(description.paths).flatMap(Object.values)) {
    for (const parameter of parameters.filter(({ required }) => !required)) {
      const { $ref = "", ...schema } = parameter.schema;
      const { default: value, enum: values } = description.components.schemas[$ref.split("/").at(-1)] ?? schema;
      if (value !== undefined || values) parameter.examples = { default: { value: "" } };
    }
  }
  const { info } = description;
  info.description = info.description.replaceAll("http://localhost:8787", location.origin);
  if (!IS_LOCAL) info.description = info.description.replace(`=${LOCAL_KEY}`, "='<your key>'");
  return description;
}

/** Adds the names, states and keyboard access that Scalar's elements lack (WCAG 2.1: 2.1.1, 4.1.2). */
function completeAccess() {
  for (const button of document.querySelectorAll("button.group\\/copy-button:not([aria-label])")) {
    button.ariaLabel = "Copy";
    // In the request client it refers to an element that does not exist.
    button.removeAttribute("aria-controls");
  }
  for (const editor of document.querySelectorAll(".cm-content:not([aria-label])")) {
    editor.ariaLabel = "JSON";
    // A response is not editable, but can be scrolled.
    editor.tabIndex = 0;
  }
  for (const code of document.querySelectorAll("pre > code:not([tabindex])")) code.tabIndex = 0;
  for (const button of document.querySelectorAll("button[role=none]")) button.removeAttribute("role");
  for (const field of document.querySelectorAll("[role=combobox]:not([aria-expanded])")) field.ariaExpanded = "false";
  // Their only text is their value, which is empty at first.
  for (const menu of document.querySelectorAll("td [aria-haspopup=menu]")) menu.title = "Value";
}

/** Scrolls to the response, which is below the request on a narrow screen. */
function showResponse({ target }) {
  if (!target.closest("[data-addressbar-action=send]")) return;
  document.querySelector(".scalar-client section[aria-label=Response]").scrollIntoView();
}

document.addEventListener("click", showResponse);
new MutationObserver(completeAccess).observe(document.body, { childList: true, subtree: true });

createApiReference("#reference", {
  content: await loadDescription(),
  documentDownloadType: "none",
  authentication: IS_LOCAL
    ? { preferredSecurityScheme: "apiKey", securitySchemes: { apiKey: { token: LOCAL_KEY } } }
    : {},
  withDefaultFonts: false,
  orderSchemaPropertiesBy: "preserve",
  orderRequiredPropertiesFirst: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  onLoaded: () => document.getElementById("summary").remove(),
});
