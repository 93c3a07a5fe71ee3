// A migration that has landed is never edited, renamed or removed: where it was applied, Wrangler goes by its name, and
// would skip the edit in silence.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { expect, it } from "vitest";

/** Migrations that must be edited, because they failed or did damage: "Write a migration" in docs/CONTRIBUTING.md. */
const CORRECTED: string[] = ["0001_pets.sql", "0002_pets_stay.sql"];

/** What Git prints, or undefined if it fails, as in an archive. */
function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync("git", args, { encoding: "utf8" });
  return status === 0 ? stdout.trimEnd() : undefined;
}

// What has landed: on a branch, the commit at which it left main. On main itself, the commit before.
const head = git("rev-parse", "HEAD");
const fork = git("merge-base", "HEAD", "refs/remotes/origin/main");
const landed = (fork !== head && fork) || (git("rev-parse", "--verify", "--quiet", "HEAD^") ?? "");
const skipped = landed ? "" : " (SKIPPED: Git does not know the commit before)";

it.skipIf(skipped)(`no migration that has landed is changed${skipped}`, () => {
  const files = ["migrations", ...CORRECTED.map((file) => `:!migrations/${file}`)];
  expect(git("diff", "--name-status", "--no-renames", "--diff-filter=a", landed, "--", ...files)).toBe("");
  const names = git("ls-tree", "--name-only", landed, "migrations/")?.match(/[^/\n]+$/gm) ?? [];
  // New ones come after them, because Wrangler applies them by name.
  expect(readdirSync("migrations").sort().slice(0, names.length)).toEqual(names);
});
