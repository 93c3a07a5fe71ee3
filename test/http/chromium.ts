// The browser for the tests of the page.

import { existsSync } from "node:fs";

const USUAL_PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** Its path, or undefined where there is none. Throws when there is none where the variable CHROMIUM, `chosen`, says. */
export function findChromium(chosen: string | undefined): string | undefined {
  if (chosen && !existsSync(chosen)) throw new Error(`CHROMIUM is ${chosen}, and there is no such file`);
  return chosen || USUAL_PLACES.find((path) => existsSync(path));
}
