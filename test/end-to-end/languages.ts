// How a reader runs an example of the page in each language.

import { spawnSync } from "node:child_process";

const isInstalled = (program: string) => spawnSync(program, ["--help"], { stdio: "ignore" }).error === undefined;

const language = (needs: string[], command: string[]) => {
  const missing = needs.filter((program) => !isInstalled(program));
  return { command, skipped: missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "" };
};

/**
 * Named as in a code block. The text of the program follows the `command`. `skipped`: why the examples cannot run here,
 * or nothing.
 */
export const LANGUAGES = {
  sh: language(["sh", "curl", "openssl"], ["sh", "-c"]),
  js: language([], [process.execPath, "--input-type=module", "--eval"]),
  python: language(["python3"], ["python3", "-c"]),
};

/** The header cf-ray of every response to an example, which reports of problems need. */
export const RAY = "9e7ef1dc58252cea-AMS";
