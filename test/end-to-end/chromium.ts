// Finds the browser for the tests of the API reference.

import { existsSync } from "node:fs";

const USUAL_PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** Its path, or undefined if it is not found. `chosen` is the variable CHROMIUM: throws if that file does not exist. */
export function findChromium(chosen: string | undefined): string | undefined {
  if (chosen && !existsSync(chosen)) throw new Error(`CHROMIUM is ${chosen}, but this file does not exist`);
  return chosen || USUAL_PLACES.find((path) => existsSync(path));
}
