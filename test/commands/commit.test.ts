// Which commit a folder is at, with the real Git, and whether it has the packages of that commit.

import { cpSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { removeProject } from "../dev-server.ts";
import { commitAll, git } from "../git.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "animal-store-")));
  git(folder, "init", "--quiet");
  place(join(folder, ".gitignore"), ".env\n*.local.sql\n/src/worker-configuration.d.ts\n/dist/\n/node_modules/\n");
  placePackages("package-lock.json", {});
  placePackages("node_modules/.package-lock.json", {});
});
afterEach(() => {
  vi.unstubAllEnvs();
  removeProject(folder);
});

/** The project's script, which describes the folder that it is in. */
async function scriptIn(at = folder): Promise<typeof import("../../scripts/commit.ts")> {
  place(join(at, "scripts/commit.ts"));
  cpSync("scripts/commit.ts", join(at, "scripts/commit.ts"));
  return import(pathToFileURL(join(at, "scripts/commit.ts")).href);
}

function place(path: string, text = "") {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const placePackages = (lockFile: string, packages: object) =>
  place(join(folder, lockFile), JSON.stringify({ packages }));

it("takes a folder without changes, and lists the files that are not in the commit", async () => {
  const { requireCleanCommit } = await scriptIn();
  expect(requireCleanCommit).toThrow("git rev-parse failed: ");
  const hash = commitAll(folder);
  // These are not deployed.
  for (const file of ["src/worker-configuration.d.ts", "dist/index.html", ".env"]) place(join(folder, file));
  expect(requireCleanCommit()).toBe(hash);
  expect(hash).toMatch(/^[0-9a-f]{12}$/);
  // An untracked migration is applied, too, and an ignored one.
  for (const file of ["migrations/0003.sql", "src/.env", "migrations/0004.local.sql"]) place(join(folder, file));
  const files = "?? migrations/0003.sql\nmigrations/0004.local.sql\nsrc/.env";
  expect(requireCleanCommit).toThrow(`these files are not in it:\n${files}\nCommit or move them.`);
});

it("takes only the packages of package-lock.json, of which optional ones may be absent", async () => {
  const { requireCleanCommit } = await scriptIn();
  const [zod, fsevents] = [{ integrity: "sha512-1" }, { integrity: "sha512-2", optional: true }];
  placePackages("package-lock.json", { "": {}, "node_modules/zod": zod, "node_modules/fsevents": fsevents });
  commitAll(folder);
  const having = (installed: object) => {
    placePackages("node_modules/.package-lock.json", installed);
    return requireCleanCommit;
  };
  expect(having({ "node_modules/zod": zod, "node_modules/fsevents": fsevents })).not.toThrow();
  expect(having({ "node_modules/zod": zod })).not.toThrow();
  const message = "The installed packages differ from package-lock.json:\nnode_modules/zod\n";
  expect(having({})).toThrow(`${message}Run npm ci.`);
  expect(having({ "node_modules/zod": { link: true } })).toThrow(`${message}Run npm ci.`);
  const other = { integrity: "sha512-3" };
  const both = having({ "node_modules/zod": other, "node_modules/fsevents": other });
  expect(both).toThrow(`${message}node_modules/fsevents\nRun npm ci.`);
});

it("takes no folder that is not the root of a repository, or whose Git does not work", async () => {
  commitAll(folder);
  const { requireCleanCommit } = await scriptIn(join(folder, "archive"));
  expect(requireCleanCommit).toThrow("This folder is not the root of a Git repository.");
  vi.stubEnv("PATH", "");
  expect(requireCleanCommit).toThrow("git rev-parse failed: spawnSync git ENOENT");
});
