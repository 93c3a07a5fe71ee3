// What a deployment does with one Worker: it deploys a section of wrangler.toml, and asks which version serves. Ids and
// addresses come from what Wrangler writes for programs.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { printable } from "../command-line.ts";
import type { wrangler } from "../wrangler.ts";

type Run = typeof wrangler;

/** The id of the version that serves or, of several, each with its share. Throws WranglerFailed. */
export async function live(run: Run, section: string): Promise<string> {
  const { versions }: { versions: { version_id: string; percentage: number }[] } = JSON.parse(
    await run(["deployments", "status", "--json", "--env", section]),
  );
  const shares = versions.toSorted((a, b) => b.percentage - a.percentage);
  return shares
    .map((share) => share.version_id + (share.percentage === 100 ? "" : ` (${share.percentage}%)`))
    .join(", ");
}

/**
 * Deploys a section of wrangler.toml, with these secrets in addition to its own. Returns the new version, its base URL,
 * and Wrangler's warnings. Throws WranglerFailed.
 */
export async function deployWorker(run: Run, section: string, commit: string, secrets?: Record<string, string>) {
  // Only its owner can read it.
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const [report, file] = [join(folder, "report.jsonl"), join(folder, "secrets.json")];
  let warnings = "";
  try {
    if (secrets) writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 });
    await run(["deploy", "--env", section, "--tag", commit, ...(secrets ? ["--secrets-file", file] : [])], {
      // The latter is for scripts/build/build.ts.
      env: { WRANGLER_OUTPUT_FILE_PATH: report, IS_TESTED: "true" },
      warn: (text) => {
        warnings += text;
        console.error(printable(text));
      },
    });
    const records = readFileSync(report, "utf8").trim().split("\n");
    const { version_id, targets } = records.map((line) => JSON.parse(line)).findLast(({ type }) => type === "deploy");
    return { version: String(version_id), base: baseIn(targets), warnings };
  } finally {
    remove();
    process.off("exit", remove);
  }
}

/** The base URL of the first address that Wrangler reports. A workers.dev address works at once, a new domain later. */
export function baseIn(targets: string[]): string | undefined {
  const url = targets.find((target) => URL.canParse(target));
  const [, domain] = targets.map((target) => /^(\S+) \(custom domain/.exec(target)).find(Boolean) ?? [];
  return url || domain ? `${url ?? `https://${domain}`}/v1` : undefined;
}
