// The commit that the project's folder is at. A deployment takes a commit, and the page names it, so it tells which
// commit serves.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/**
 * Its abbreviated hash, with `-dirty` if any file differs. Empty without Git, or if no repository has its root here.
 */
export function currentCommit(): string {
  try {
    const hash = abbreviatedHash();
    return changedFiles() ? `${hash}-dirty` : hash;
  } catch {
    return "";
  }
}

/** The abbreviated hash. Throws if any file differs, or if the folder is not a repository. */
export function requireCleanCommit(): string {
  const hash = abbreviatedHash();
  const files = changedFiles();
  if (!files) return hash;
  throw new Error(`A deployment takes a commit, and these files are not in it:\n${files}\nCommit or move them.`);
}

/** What would be deployed and is not in the commit. An untracked migration would be applied, too. */
function changedFiles(): string {
  const generated = ":!src/worker-configuration.d.ts";
  const ignored = ["--others", "--ignored", "--exclude-standard", "--", "src", "migrations", generated];
  const files = [git("status", "--porcelain", "--untracked-files=all"), git("ls-files", ...ignored)];
  return files.filter(Boolean).join("\n");
}

function abbreviatedHash(): string {
  // An archive may have been unpacked inside a different repository.
  if (git("rev-parse", "--show-prefix") !== "") throw new Error("This folder is not the root of a Git repository.");
  return git("rev-parse", "--short", "HEAD");
}

/** What the command prints. Throws if Git is missing or fails. */
function git(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${error?.message ?? stderr.trim()}`);
  return stdout.trimEnd();
}
