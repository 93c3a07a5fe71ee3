// Which commit a folder is at, with the real Git.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { removeProject } from "../dev-server.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "animal-store-")));
});
afterEach(() => removeProject(folder));

function git(at: string, ...args: string[]): string {
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  return execFileSync("git", [...identity, ...args], { cwd: at, encoding: "utf8", stdio: "pipe" }).trim();
}

/** Commits everything in the folder, and returns the abbreviated hash. */
function commit(at: string): string {
  git(at, "add", "--all");
  git(at, "commit", "--quiet", "--allow-empty", "--message", "a commit");
  return git(at, "rev-parse", "--short", "HEAD");
}

/** A folder with the project's script, which describes the folder that it is in. */
async function project(at = folder): Promise<typeof import("../../scripts/commit.ts")> {
  mkdirSync(join(at, "scripts"), { recursive: true });
  cpSync("scripts/commit.ts", join(at, "scripts/commit.ts"));
  return import(pathToFileURL(join(at, "scripts/commit.ts")).href);
}

it("takes a folder without changes, and lists the files that have some", async () => {
  const { committed, currentCommit } = await project();
  git(folder, "init", "--quiet");
  expect(committed).toThrow("git rev-parse failed: ");
  const hash = commit(folder);
  expect([committed(), currentCommit()]).toEqual([hash, hash]);
  // An untracked migration is applied, too.
  writeFileSync(join(folder, "0003_untracked.sql"), "");
  expect(committed).toThrow("these files are not in it, or may differ:\n?? 0003_untracked.sql\nCommit or remove them");
  expect(currentCommit()).toBe(`${hash}-dirty`);
});

it("finds what Git does not show", async () => {
  const { committed, currentCommit } = await project();
  git(folder, "init", "--quiet");
  const place = (path: string, text = "") => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  place(".gitignore", ".env\n*.local.sql\n/src/worker-configuration.d.ts\n/dist/\n");
  for (const file of ["src/assumed.ts", "src/skipped.ts", "docs/a.md"]) place(file);
  const hash = commit(folder);
  // These are not deployed.
  for (const file of ["src/worker-configuration.d.ts", "dist/index.html", ".env"]) place(file);
  expect([committed(), currentCommit()]).toEqual([hash, hash]);
  for (const file of ["src/site/.env", "migrations/0003.local.sql"]) place(file);
  git(folder, "update-index", "--assume-unchanged", "src/assumed.ts");
  git(folder, "update-index", "--skip-worktree", "src/skipped.ts");
  for (const file of ["src/assumed.ts", "src/skipped.ts"]) place(file, "changed");
  expect(git(folder, "status", "--porcelain")).toBe("");
  expect(committed).toThrow(`may differ:
migrations/0003.local.sql
src/site/.env
h src/assumed.ts
S src/skipped.ts
`);
  expect(currentCommit()).toBe(`${hash}-dirty`);
});

it("takes no folder that is not the root of a repository, or whose Git does not work", async () => {
  git(folder, "init", "--quiet");
  commit(folder);
  const { committed, currentCommit } = await project(join(folder, "archive"));
  expect(committed).toThrow("This folder is not the root of a Git repository.");
  vi.stubEnv("PATH", "");
  expect(committed).toThrow("git rev-parse failed: spawnSync git ENOENT");
  expect(currentCommit()).toBe("");
  vi.unstubAllEnvs();
});
