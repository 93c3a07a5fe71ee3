// Adds what the page can do without: this service's address and key, buttons that copy, and one language for all
// examples.

export const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
/** That of `npm run dev`. */
export const LOCAL_KEY = "local-development-key";
/** The key is never sent over plain HTTP, except on this machine. */
export const ORIGIN = IS_LOCAL ? location.origin : `https://${location.host}`;
const tabs = [...document.querySelectorAll(".tabs > details > summary")];
let storage;
try {
  storage = localStorage;
} catch {} // The browser forbids it.

/** A new element with these properties and children. */
export function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

for (const code of document.querySelectorAll("pre > code")) {
  if (code.textContent.includes("<your ")) {
    code.innerHTML = code.innerHTML.replace("https://&lt;your address&gt;", ORIGIN);
    if (IS_LOCAL) code.innerHTML = code.innerHTML.replace("&lt;your API key&gt;", LOCAL_KEY);
  }
  if (!code.className || !navigator.clipboard) continue; // A response, or a page without HTTPS.
  const button = element("button", { type: "button", ariaLive: "polite" }, "Copy");
  button.onclick = async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };
  code.before(button);
}

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
    storage?.setItem("language", tab.textContent);
  };
}
show(storage?.getItem("language"));
