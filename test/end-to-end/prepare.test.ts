// Whose Node runs the tools after an installation (scripts/prepare.js). A program that prints its arguments replaces
// npm.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { expect, it } from "vitest";
import { launch, outcome } from "../processes.ts";
import { IS_DEPLOYED, LOCAL_ONLY } from "./service.ts";

// On Windows, the link is different files.
const IS_SKIPPED = IS_DEPLOYED || process.platform === "win32";

it.skipIf(IS_SKIPPED)(`keeps the project's Node only if the user's is too old${LOCAL_ONLY}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  const link = join(folder, "node_modules/.bin/node");
  mkdirSync(dirname(link), { recursive: true });
  writeFileSync(join(folder, "npm"), '#!/bin/sh\necho "npm $*" >&2\n', { mode: 0o755 });

  const prepare = async (version: string) => {
    writeFileSync(link, "");
    const npm_config_user_agent = `npm/11.19.1 node/v${version} linux x64 workspaces/false`;
    const env = { PATH: `${folder}:${process.env["PATH"]}`, npm_config_user_agent };
    const { errors } = await outcome(launch(process.execPath, [resolve("scripts/prepare.js")], folder, env));
    return [existsSync(link), errors];
  };
  // npm 10 removes the link, and this restores it.
  const restored = [true, "npm rebuild --ignore-scripts\nnpm run types\n"];
  for (const version of ["22.17.1", "23.11.1", "24.2.0"]) expect(await prepare(version)).toEqual(restored);
  const removed = [false, "npm run types\n"];
  for (const version of ["22.18.0", "24.3.0", "25.0.0"]) expect(await prepare(version)).toEqual(removed);
  rmSync(folder, { recursive: true });
});
