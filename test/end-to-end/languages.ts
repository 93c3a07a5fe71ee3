// How a reader runs an example of the page in each language.

import { spawnSync } from "node:child_process";

const starts = (program: string) => spawnSync(program, ["--help"], { stdio: "ignore" }).error === undefined;
const imports = (name: string) => spawnSync("python3", ["-c", `import ${name}`], { stdio: "ignore" }).status === 0;

const language = (command: string[], missing: string[]) => ({
  command,
  skipped: missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "",
});

/**
 * Named as in a code block. The text of the program follows the `command`. `skipped`: why the examples cannot run here,
 * or nothing.
 */
export const LANGUAGES = {
  sh: language(
    ["sh", "-c"],
    ["sh", "curl", "openssl"].filter((program) => !starts(program)),
  ),
  js: language([process.execPath, "--input-type=module", "--eval"], []),
  python: language(["python3", "-c"], imports("requests") ? [] : ["requests for python3"]),
};
