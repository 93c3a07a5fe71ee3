// Git, in the folders of tests.

import { execFileSync } from "node:child_process";

export function git(folder: string, ...args: string[]): string {
  const identity = ["-c", "user.name=An operator", "-c", "user.email=operator@example.test"];
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8", stdio: "pipe" }).trim();
}

/** Commits everything in the folder, and returns the first twelve digits of its hash. */
export function commitAll(folder: string): string {
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--allow-empty", "--message", "a commit");
  return git(folder, "rev-parse", "--short=12", "HEAD");
}
