// The commit that the project's folder is at. The page names it, so it tells which commit serves.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** Its abbreviated hash, with `-dirty` if any file differs. Empty without Git, or if this folder is not the root of a repository. */
export function currentCommit(): string {
  const git = (...args: string[]) => spawnSync("git", args, { cwd: ROOT, encoding: "utf8" }).stdout?.trim() ?? "";
  // An archive may have been unpacked inside a different repository.
  const hash = git("rev-parse", "--show-prefix") === "" ? git("rev-parse", "--short", "HEAD") : "";
  // Untracked files count, because an untracked migration is applied too.
  return hash && git("status", "--porcelain", "--untracked-files") ? `${hash}-dirty` : hash;
}
