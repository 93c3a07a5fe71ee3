// The commit that is deployed, and a copy of it with its own packages. A deployment is made from the copy, so whatever
// this folder has, only the commit can be deployed. The copy is an archive: a clone of a partial clone, or a worktree
// of a sparse one, can lack files without an error.

import { execFileSync, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ROOT } from "./wrangler.ts";

/** Without the settings of this machine, such as filters. */
const PLAIN = { GIT_CONFIG_GLOBAL: devNull, GIT_CONFIG_NOSYSTEM: "1", GIT_ATTR_NOSYSTEM: "1" };

function run(root: string, args: string[], env = {}): Buffer {
  // What `git replace` has put in place of an object is not what its hash names.
  const all = { ...process.env, GIT_NO_REPLACE_OBJECTS: "1", ...env };
  return execFileSync("git", args, { cwd: root, env: all, stdio: "pipe", maxBuffer: Number.POSITIVE_INFINITY });
}

const git = (root: string, args: string[], env = {}): string => run(root, args, env).toString().trimEnd();

/** The hash of a commit. Throws if no commit has this name, or no repository its root here. */
export function findCommit(name: string, root = ROOT): string {
  // An archive may have been unpacked inside a different repository.
  if (git(root, ["rev-parse", "--show-prefix"])) throw new Error("This folder is not the root of a Git repository.");
  let hash = "";
  try {
    hash = git(root, ["rev-parse", "--verify", "--quiet", `${name}^{commit}`]);
  } catch {}
  // A tag can have the name of a hash.
  const isOther = /^[0-9a-f]{4,}$/.test(name) && !hash.startsWith(name);
  if (hash && !isOther) return hash;
  throw new Error(`${name} is not a commit of this clone. To get new commits, run git fetch.`);
}

/** The commit of this folder. Throws if its wrangler.toml differs, because `setup` and `backup` read that. */
export function currentCommit(root = ROOT): string {
  const commit = findCommit("HEAD", root);
  const committed = git(root, ["rev-parse", `${commit}:wrangler.toml`]);
  if (git(root, ["hash-object", "wrangler.toml"]) === committed) return commit;
  throw new Error("wrangler.toml has changes that are not committed. Commit them, or undo them.");
}

/** The files that Git lists as changed or new. */
export const uncommittedFiles = (): string => git(ROOT, ["status", "--short"]).replaceAll("\n", ",");

/** Fills an empty folder with the files of a commit. Throws if settings of this clone have changed or omitted any. */
export function extractCommit(commit: string, folder: string, root = ROOT): void {
  execFileSync("tar", ["-xf", "-"], { cwd: folder, input: run(root, ["archive", commit]) });
  git(folder, ["init", "--quiet"], PLAIN);
  git(folder, ["add", "--all", "--force"], PLAIN);
  // Without modes, which Windows does not have.
  const namesOf = (list: string) => list.replaceAll(/^\d+ (blob )?(\w+)( 0)?\t/gm, "$2 ");
  const files = namesOf(git(folder, ["ls-files", "--stage"], PLAIN));
  const isWhole = files === namesOf(git(root, ["ls-tree", "-r", commit]));
  rmSync(join(folder, ".git"), { recursive: true, force: true, maxRetries: 5 });
  if (!isWhole) throw new Error("The copy is not the commit: see .git/info/attributes, and the filters of git config.");
}

/** Installs the packages of package-lock.json in a folder: from npm's cache or, if one is not there, the registry. */
export async function installPackages(folder: string): Promise<void> {
  const command = "npm ci --include=dev --ignore-scripts --no-audit --no-fund";
  const install = (flags: string) => spawnSync(`${command} ${flags}`, { cwd: folder, shell: true, stdio: "inherit" });
  if (install("--offline --silent").status === 0) return;
  await wait(100); // Ctrl-C ends the first npm. Now it ends this program, before a second one starts.
  if (install("--fetch-retries=0").status !== 0) throw new Error("npm failed, so nothing was deployed.");
}
