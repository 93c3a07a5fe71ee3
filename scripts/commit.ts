// The commit that the project's folder is at. A deployment takes a commit, and the page names it, so it tells which
// commit serves.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
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

/**
 * The abbreviated hash, or `unknown` without a repository, as in an archive. Throws if any file differs, or Git fails.
 */
export function committed(): string {
  if (!existsSync(join(ROOT, ".git"))) return "unknown";
  const hash = abbreviatedHash();
  const files = changedFiles();
  if (!files) return hash;
  throw new Error(`A deployment takes a commit, and these files are not in it, or may differ:
${files}
Commit or remove them, or deploy the folder as it is, without a test: npx wrangler deploy --env <environment>`);
}

/** How far the commit is from origin/main, as it was last fetched. Empty if that is unknown. */
export function distance(): string {
  try {
    abbreviatedHash();
    // Counts are wrong without the whole history, which a workflow does not have.
    if (git("rev-parse", "--is-shallow-repository") === "true") return "";
    const counts = git("rev-list", "--left-right", "--count", "refs/remotes/origin/main...HEAD");
    const [behind, ahead] = counts.split("\t");
    return `${behind} behind and ${ahead} ahead of origin/main, as last fetched`;
  } catch {
    return "";
  }
}

/** What would be deployed and is not in the commit, or may differ from it, with a reason if Git would not show it. */
function changedFiles(): string {
  const generated = ":!src/worker-configuration.d.ts";
  const ignored = git("ls-files", "--others", "--ignored", "--exclude-standard", "--", "src", "migrations", generated);
  // A small letter: --assume-unchanged. S: --skip-worktree, or a sparse checkout.
  const hidden = git("ls-files", "-v").match(/^[a-zS] .*/gm) ?? [];
  return [
    // An untracked migration would be applied, too.
    git("status", "--porcelain", "--untracked-files", "--ignore-submodules=none"),
    ignored.replaceAll(/^.+/gm, "$& (ignored by Git)"),
    ...hidden.map((line) => `${line.slice(2)} (marked assume-unchanged or skip-worktree)`),
  ]
    .filter(Boolean)
    .join("\n");
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
