// Which commit a folder is at, with the real Git, and whether it has the packages of that commit.

import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { requireCleanCommit } from "../../scripts/commit.ts";
import { removeProject } from "../dev-server.ts";
import { commitAll, git } from "../git.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "animal-store-")));
  git(folder, "init", "--quiet");
  place(".gitignore", ".env\n*.local.sql\n/src/worker-configuration.d.ts\n/dist/\n/node_modules/\n");
  placePackages("package-lock.json", {});
  placePackages("node_modules/.package-lock.json", {});
});
afterEach(() => {
  vi.unstubAllEnvs();
  removeProject(folder);
});

function place(file: string, text = "") {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

const placePackages = (lockFile: string, packages: object) => place(lockFile, JSON.stringify({ packages }));

const check = () => requireCleanCommit(folder);

it("takes a folder without changes, and lists the files that are not in the commit", () => {
  expect(check).toThrow("git rev-parse failed: ");
  const hash = commitAll(folder);
  // These are not deployed.
  for (const file of ["src/worker-configuration.d.ts", "dist/index.html", ".env"]) place(file);
  expect(check()).toBe(hash);
  expect(hash).toMatch(/^[0-9a-f]{12}$/);
  // An untracked migration is applied, too, and an ignored one.
  for (const file of ["migrations/0003.sql", "src/.env", "migrations/0004.local.sql"]) place(file);
  const files = "?? migrations/0003.sql\nmigrations/0004.local.sql\nsrc/.env";
  expect(check).toThrow(`these files are not in it:\n${files}\nCommit or move them.`);
});

it("takes only the packages of package-lock.json, of which optional ones may be absent", () => {
  const [zod, fsevents] = [{ integrity: "sha512-1" }, { integrity: "sha512-2", optional: true }];
  placePackages("package-lock.json", { "": {}, "node_modules/zod": zod, "node_modules/fsevents": fsevents });
  commitAll(folder);
  const having = (installed: object) => {
    placePackages("node_modules/.package-lock.json", installed);
    return check;
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

it("takes no folder that is not the root of a repository, or whose Git does not work", () => {
  place("archive/README.md");
  expect(() => requireCleanCommit(join(folder, "archive"))).toThrow("This folder is not the root of a Git repository.");
  vi.stubEnv("PATH", "");
  expect(check).toThrow("git rev-parse failed: spawnSync git ENOENT");
});
