// The commit that is deployed, and a copy of it with its own packages. A deployment is made from the copy, so whatever
// this folder has, only the commit can be deployed. The copy is an archive: a clone of a partial clone, or a worktree
// of a sparse one, can lack files without an error.

import { execFileSync, spawnSync } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { ROOT } from "./wrangler.ts";

const git = (root: string, ...args: string[]) =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe" }).trimEnd();

/** The first twelve digits of a commit's hash. Throws if no commit has this name, or no repository its root here. */
export function findCommit(name: string, root = ROOT): string {
  // An archive may have been unpacked inside a different repository.
  if (git(root, "rev-parse", "--show-prefix")) throw new Error("This folder is not the root of a Git repository.");
  try {
    return git(root, "rev-parse", "--verify", "--quiet", "--short=12", `${name}^{commit}`);
  } catch {
    throw new Error(`${name} is not a commit of this clone. To get new commits, run git fetch.`);
  }
}

/** The commit of this folder. Throws if its wrangler.toml differs, because `setup` and `backup` read that. */
export function currentCommit(root = ROOT): string {
  const commit = findCommit("HEAD", root);
  if (git(root, "hash-object", "wrangler.toml") === git(root, "rev-parse", "HEAD:wrangler.toml")) return commit;
  throw new Error("wrangler.toml has changes that are not committed. Commit them, or undo them.");
}

/** The files that Git lists as changed or new. */
export const uncommittedFiles = (): string => git(ROOT, "status", "--short").replaceAll("\n", ",");

/** Fills an empty folder with the files of a commit. */
export function extractCommit(commit: string, folder: string, root = ROOT): void {
  const archive = execFileSync("git", ["archive", commit], { cwd: root, maxBuffer: Number.POSITIVE_INFINITY });
  execFileSync("tar", ["-xf", "-"], { cwd: folder, input: archive });
}

/** Installs the packages of package-lock.json in a folder: from npm's cache or, if one is not there, the registry. */
export async function installPackages(folder: string): Promise<void> {
  const command = "npm ci --include=dev --ignore-scripts --no-audit --no-fund";
  const run = (flags: string) => spawnSync(`${command} ${flags}`, { cwd: folder, shell: true, stdio: "inherit" });
  if (run("--offline --silent").status === 0) return;
  await wait(100); // Ctrl-C ends the first npm. Now it ends this program, before a second one starts.
  if (run("--fetch-retries=0").status !== 0) throw new Error("npm failed, so nothing was deployed.");
}
