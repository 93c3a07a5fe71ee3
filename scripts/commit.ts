// The commit that a folder is at. A deployment takes a commit, so that what serves can be named.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/**
 * The first twelve digits of its hash. Throws if any file or package differs, if no repository has its root here, or
 * without Git.
 */
export function requireCleanCommit(root = ROOT): string {
  const git = (...args: string[]) => runGit(root, args);
  // An archive may have been unpacked inside a different repository.
  if (git("rev-parse", "--show-prefix") !== "") throw new Error("This folder is not the root of a Git repository.");
  const hash = git("rev-parse", "--short=12", "HEAD");
  const generated = ":!src/worker-configuration.d.ts";
  // What would be deployed and is not in the commit. An untracked migration would be applied, too.
  const ignored = ["--others", "--ignored", "--exclude-standard", "--", "src", "migrations", generated];
  const changed = [git("status", "--porcelain", "--untracked-files=all"), git("ls-files", ...ignored)].filter(Boolean);
  const files = changed.join("\n");
  if (files)
    throw new Error(`A deployment takes a commit, and these files are not in it:\n${files}\nCommit or move them.`);
  const packages = differingPackages(root).join("\n");
  if (packages) throw new Error(`The installed packages differ from package-lock.json:\n${packages}\nRun npm ci.`);
  return hash;
}

/** The packages of the commit that npm has not installed, or not with the same content. */
function differingPackages(root: string): string[] {
  const packagesIn = (lockFile: string): Record<string, { integrity?: string; optional?: boolean }> =>
    JSON.parse(readFileSync(join(root, lockFile), "utf8")).packages;
  const installed = packagesIn("node_modules/.package-lock.json");
  return Object.entries(packagesIn("package-lock.json")).flatMap(([path, { integrity, optional }]) => {
    const isLeftOut = optional && !installed[path]; // It may be for a different platform.
    return isLeftOut || installed[path]?.integrity === integrity ? [] : [path];
  });
}

/** What the command prints. Throws if Git is missing or fails. */
function runGit(folder: string, args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync("git", args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${error?.message ?? stderr.trim()}`);
  return stdout.trimEnd();
}
