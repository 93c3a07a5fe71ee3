// What npm runs after it has installed the packages. It decides whose Node runs the tools from then on: the project's
// own is large and comes from a volunteer's packages, so it is installed only if the user's is too old. It stays inside
// node_modules, so nothing else has to ignore or copy it. JavaScript, because Node 20 may run this script.

import { execSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import "./other-settings.js"; // warns

const LINK = "node_modules/.bin/node";
const SOURCE = "scripts/node";
const COPY = "node_modules/.node";

// The Node that runs npm, and not always this script. It is not the user's if node_modules/.bin is first in their PATH.
const { npm_config_user_agent, npm_node_execpath = "" } = process.env;
const isOwn = /[\\/]node_modules[\\/]\.node[\\/]/.test(npm_node_execpath);
const [, major, minor] = (/node\/v(\d+)\.(\d+)/.exec(npm_config_user_agent) ?? []).map(Number);
// The commands need type stripping and import.meta.main. Without the latter, they would do nothing and succeed.
const isNewEnough = major === 22 ? minor >= 18 : major === 24 ? minor >= 3 : major > 24;
const own = isNewEnough && !isOwn ? undefined : installNode();

if (process.platform === "win32") {
  // Never removed: Windows fails if a batch file is gone when its command ends, and this one may run this script.
  writeFileSync(`${LINK}.cmd`, `@"${own ? `%~dp0${own}` : "node.exe"}" %*\r\n`);
} else {
  rmSync(LINK, { force: true });
  if (own) symlinkSync(own, LINK);
}
try {
  execSync("npm run types");
} catch {
  console.error("The types of the bindings are missing. Correct the error above, and run npm run types.");
}

/** Installs the project's Node, unless it is there, and returns its path from the folder of the link. */
function installNode() {
  const lockIn = (folder) => readFileSync(`${folder}/package-lock.json`, "utf8");
  // npm writes its own lock file last. On Windows, it could not replace the Node that runs this script.
  if (!existsSync(`${COPY}/node_modules/.package-lock.json`) || lockIn(COPY) !== lockIn(SOURCE)) {
    rmSync(COPY, { recursive: true, force: true });
    cpSync(SOURCE, COPY, { recursive: true });
    execSync(`npm ci --prefix ${COPY}`);
  }
  // The binary itself, and not npm's link, which npm 10 leaves out: all five packages have that name.
  const binary = readdirSync(COPY, { recursive: true }).find((path) => /[\\/]bin[\\/]node(\.exe)?$/.test(path));
  if (!binary) throw new Error("Install Node 24.3 or newer: the project has no Node of its own for this platform.");
  return `../.node/${binary}`;
}
