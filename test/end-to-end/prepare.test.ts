// Whose Node runs the tools after an installation (scripts/prepare.js). A script replaces npm: it installs a package
// with an empty binary, or fails.

import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { launch, outcome } from "../processes.ts";
import { IS_DEPLOYED, LOCAL_ONLY } from "./service.ts";

// On Windows, the link is a batch file, which is always there.
const IS_SKIPPED = IS_DEPLOYED || process.platform === "win32";

const NPM = `#!/bin/sh
[ "$FAILS" != $1 ] || exit 1
[ $1 = ci ] || exit 0
mkdir -p node_modules/.node/node_modules/node-any-x64/bin && cd node_modules/.node/node_modules
touch node-any-x64/bin/node .package-lock.json
`;

it.skipIf(IS_SKIPPED)(`installs and links the project's Node only if the user's is too old${LOCAL_ONLY}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
  cpSync("scripts/node", join(folder, "scripts/node"), { recursive: true });
  writeFileSync(join(folder, "npm"), NPM, { mode: 0o755 });
  const prepare = async (version: string, FAILS = "", npm_node_execpath = "/usr/bin/node") => {
    const npm_config_user_agent = `npm/11.19.1 node/v${version} linux x64 workspaces/false`;
    const env = { PATH: `${folder}:${process.env["PATH"]}`, npm_config_user_agent, npm_node_execpath, FAILS };
    const { status } = await outcome(launch(process.execPath, [resolve("scripts/prepare.js")], folder, env));
    // False if the link leads to nothing, too.
    return [status, existsSync(join(folder, "node_modules/.bin/node"))];
  };
  expect(await prepare("20.20.2", "ci")).toEqual([1, false]);
  for (const version of ["22.17.1", "23.11.1", "24.2.0"]) expect(await prepare(version)).toEqual([0, true]);
  for (const version of ["22.18.0", "24.3.0", "25.0.0"]) expect(await prepare(version)).toEqual([0, false]);
  // With node_modules/.bin first in the PATH, the project's own Node runs npm.
  expect(await prepare("25.0.0", "", join(folder, "node_modules/.node/bin/node"))).toEqual([0, true]);
  // Without types, for example while wrangler.toml has an error, the packages are installed nevertheless.
  expect(await prepare("25.0.0", "run")).toEqual([0, false]);
  rmSync(folder, { recursive: true });
});
