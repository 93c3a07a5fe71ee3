// The API reference: Scalar, configured to send no request to another origin. What is added corrects integers that it would
// round, and elements that assistive technology could not name or reach.

import { createApiReference } from "/scalar/standalone.esm.js";

const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
// The bounds of an int64 are left out, because they would be shown rounded. The guide states them.
const withoutRounded = (_, value) => (Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : value);

/** Adds what WCAG 2.1 requires (2.1.1, 4.1.2). */
function completeElements() {
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
}

new MutationObserver(completeElements).observe(document.body, { childList: true, subtree: true });
createApiReference("#reference", {
  content: JSON.parse(await (await fetch("/openapi.json")).text(), withoutRounded),
  documentDownloadType: "none",
  authentication: { securitySchemes: { apiKey: { token: IS_LOCAL ? "local-key" : "" } } },
  hiddenClients: ["xhr"], // It sends credentials, which browsers forbid because every origin may call the service.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
});
