// Whose Node runs the tools after an installation (scripts/prepare.js). A script replaces npm: it prints its arguments,
// and installs a package with an empty binary, or fails.

import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { launch, outcome } from "../processes.ts";
import { IS_DEPLOYED, LOCAL_ONLY } from "./service.ts";

// On Windows, the link is a batch file, which is always there.
const IS_SKIPPED = IS_DEPLOYED || process.platform === "win32";

const NPM = `#!/bin/sh
echo "npm $*" >&2
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

  const prepare = async (version: string, FAILS = "") => {
    const npm_config_user_agent = `npm/11.19.1 node/v${version} linux x64 workspaces/false`;
    const env = { PATH: `${folder}:${process.env["PATH"]}`, npm_config_user_agent, FAILS };
    const { status, errors } = await outcome(launch(process.execPath, [resolve("scripts/prepare.js")], folder, env));
    // False if the link leads to nothing, too.
    const isLinked = existsSync(join(folder, "node_modules/.bin/node"));
    // The error of a command that fails repeats what it printed.
    return { status, isLinked, commands: [...new Set(errors.match(/^npm .*/gm))] };
  };
  const installed = { status: 0, isLinked: true, commands: ["npm ci --prefix node_modules/.node", "npm run types"] };
  const relinked = { ...installed, commands: ["npm run types"] };
  const unlinked = { ...relinked, isLinked: false };
  const failed = { status: 1, isLinked: false, commands: ["npm ci --prefix node_modules/.node"] };

  for (const version of ["22.18.0", "24.3.0", "25.0.0"]) expect(await prepare(version)).toEqual(unlinked);
  expect(await prepare("20.20.2", "ci")).toEqual(failed);
  // `npm ci` succeeds without types, too, for example while wrangler.toml has an error.
  expect(await prepare("25.0.0", "run")).toEqual(unlinked);
  expect(await prepare("22.17.1")).toEqual(installed);
  for (const version of ["23.11.1", "24.2.0"]) expect(await prepare(version)).toEqual(relinked);
  expect(await prepare("24.3.0")).toEqual(unlinked);
  expect(await prepare("20.20.2")).toEqual(relinked);
  // A newer Node of the project.
  appendFileSync(join(folder, "scripts/node/package-lock.json"), "\n");
  expect(await prepare("20.20.2", "ci")).toEqual(failed);
  expect(await prepare("20.20.2")).toEqual(installed);
  rmSync(folder, { recursive: true });
});
