// Which commit is deployed, and that its copy is complete, with the real Git and tar.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { currentCommit, extractCommit, findCommit } from "../../scripts/commit.ts";
import { removeProject } from "../dev-server.ts";
import { commitAll, git } from "../git.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "animal-store-")));
  git(folder, "init", "--quiet");
  place(".gitattributes", "* text=auto eol=lf\n");
  place("wrangler.toml", 'name = "animal-store"\n');
});
afterEach(() => {
  vi.unstubAllEnvs();
  removeProject(folder);
});

function place(file: string, text = "") {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

it("finds a commit by any of its names", () => {
  expect(() => findCommit("HEAD", folder)).toThrow("HEAD is not a commit of this clone.");
  const commit = commitAll(folder);
  git(folder, "tag", "--annotate", "--message", "a tag", "v1");
  const hash = git(folder, "rev-parse", "HEAD");
  for (const name of ["HEAD", "v1", commit.slice(0, 7), hash]) expect(findCommit(name, folder)).toBe(hash);
  git(folder, "tag", "0123456");
  for (const name of ["no-commit", "0123456", git(folder, "rev-parse", "HEAD^{tree}")])
    expect(() => findCommit(name, folder)).toThrow(
      `${name} is not a commit of this clone. To get new commits, run git`,
    );
});

it("takes wrangler.toml only as it was committed, also if Git was told to skip it", () => {
  commitAll(folder);
  place("README.md");
  place("wrangler.toml", 'name = "animal-store"\r\n');
  expect(currentCommit(folder)).toBe(git(folder, "rev-parse", "HEAD"));
  place("wrangler.toml", 'name = "a-second-store"\n');
  git(folder, "update-index", "--skip-worktree", "wrangler.toml");
  expect(() => currentCommit(folder)).toThrow("wrangler.toml has changes that are not committed.");
});

it("takes no folder that is not the root of a repository, or whose Git does not work", () => {
  place("archive/README.md");
  const find = () => findCommit("HEAD", join(folder, "archive"));
  expect(find).toThrow("This folder is not the root of a Git repository.");
  vi.stubEnv("PATH", "");
  expect(find).toThrow("spawnSync git ENOENT");
});

it.each([
  ["partial", "--filter=blob:none", "--no-checkout"],
  ["shallow", "--depth=1"],
  ["sparse", "--sparse"],
])("copies all files of a commit from a %s clone", (_, ...flags) => {
  const earlier = commitAll(folder);
  for (const file of ["README.md", "migrations/0001.sql", ".ci/run"]) place(file, file);
  const commit = commitAll(folder);
  git(folder, "config", "uploadpack.allowFilter", "true");
  git(folder, "clone", "--quiet", ...flags, pathToFileURL(folder).href, "clone");
  const [clone, copy] = [join(folder, "clone"), join(folder, "copy")];
  mkdirSync(copy);
  extractCommit(findCommit(commit, clone), copy, clone);
  git(copy, "init", "--quiet");
  git(copy, "add", "--all");
  expect(git(copy, "write-tree")).toBe(git(folder, "rev-parse", `${commit}^{tree}`));
  if (flags.includes("--depth=1")) expect(() => findCommit(earlier, clone)).toThrow("is not a commit of this clone.");
});

it("copies what the hash names, whatever tags and replacements there are, or nothing", () => {
  place("migrations/0001.sql", "CREATE TABLE pets (id);");
  commitAll(folder);
  place("migrations/0001.sql", "DROP TABLE pets;");
  const hash = git(folder, "rev-parse", commitAll(folder));
  git(folder, "tag", hash.slice(0, 12), "HEAD~1");
  git(folder, "replace", "HEAD", "HEAD~1");
  const copyTo = (name: string) => {
    mkdirSync(join(folder, name));
    extractCommit(findCommit("HEAD", folder), join(folder, name), folder);
  };
  copyTo("copy");
  expect(readFileSync(join(folder, "copy/migrations/0001.sql"), "utf8")).toBe("DROP TABLE pets;");
  place(".git/info/attributes", "migrations export-ignore\n");
  expect(() => copyTo("other")).toThrow("The copy is not the commit: see .git/info/attributes");
});
