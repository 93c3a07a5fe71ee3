// What npm runs after it has installed the packages. It decides whose Node runs the tools from then on: the project's
// own comes from a volunteer's packages, so it stays only if the user's is too old. (npm may run this script on it,
// once.) JavaScript, because Node 20 may run it.

import { execSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";

const LINK = "node_modules/.bin/node";

// The Node that runs npm, and not always this script.
const [, major, minor] = (/node\/v(\d+)\.(\d+)/.exec(process.env.npm_config_user_agent) ?? []).map(Number);
// The commands need type stripping and import.meta.main. Without the latter, they would do nothing and succeed.
const isNewEnough = major === 22 ? minor >= 18 : major === 24 ? minor >= 3 : major > 24;

if (isNewEnough) {
  for (const suffix of ["", ".cmd", ".ps1"]) rmSync(LINK + suffix, { force: true });
  // Windows fails if a batch file is gone when its command ends, and this one may be running this script.
  if (process.platform === "win32") writeFileSync(`${LINK}.cmd`, "@node.exe %*\r\n");
} else {
  // npm 10 removes the link together with the packages for other platforms (docs/CONTRIBUTING.md, "Dependencies").
  execSync("npm rebuild --ignore-scripts");
}
execSync("npm run types");
