// Adds what the guide can do without: this service's address and key, buttons that copy, and one language for all examples.

const IS_LOCAL = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const tabs = [...document.querySelectorAll("summary")];

for (const code of document.querySelectorAll("pre > code")) {
  code.innerHTML = code.innerHTML.replace("https://&lt;your address&gt;", location.origin);
  if (IS_LOCAL) code.innerHTML = code.innerHTML.replace("&lt;your API key&gt;", "local-key");
  const text = code.textContent;
  if (!code.className || !navigator.clipboard) continue; // A response, or a page without HTTPS.
  const button = Object.assign(document.createElement("button"), { textContent: "Copy", ariaLive: "polite" });
  button.onclick = async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };
  code.prepend(button);
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
    localStorage.setItem("language", tab.textContent);
  };
}
show(localStorage.getItem("language"));
