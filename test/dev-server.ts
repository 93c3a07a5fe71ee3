// The service as `wrangler dev` starts it in a fresh copy of the project, so that the developer's own local state is
// neither used nor changed.

import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, matchesGlob, resolve } from "node:path";
import { end, launch } from "./processes.ts";
import { startServer } from "./server.ts";

/** The key of every fresh copy. */
export const LOCAL_KEY = "local-development-key";

const START = 45_000; // milliseconds

/** A folder with the files of a fresh clone, uncommitted ones included, and the packages already installed. */
export function copyProject(): string {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  const lines = [".git", ...readFileSync(".gitignore", "utf8").split("\n")];
  const patterns = lines.map((line) => line.replace(/^\/|\/$/g, ""));
  // As in Git, the last pattern that matches decides, and one that begins with ! keeps the file.
  const decisive = (file: string) => patterns.findLast((pattern) => matchesGlob(file, pattern.replace("!", "")));
  cpSync(".", folder, { recursive: true, filter: (file) => decisive(file)?.startsWith("!") ?? true });
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"), "junction");
  return folder;
}

export function removeProject(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * Runs `npm run dev` in `folder`, with these flags of Wrangler and on a free port, and waits until it answers. Throws
 * with its output if it does not. It ends with this process at the latest. `output` is what it has printed so far.
 */
export async function startDev(folder: string, ...flags: string[]) {
  const { origin, close } = await startServer(undefined, "localhost"); // on a free port
  close();
  const child = launch("npm", ["run", "dev", "--", ...flags, "--port", new URL(origin).port], folder);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const deadline = Date.now() + START;
  // A request that arrives while the runtime restarts may never be answered.
  const isUp = () => fetch(origin, { signal: AbortSignal.timeout(2_000) }).then(Boolean, () => false);
  while (!(await isUp())) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await end(child);
      throw new Error(`npm run dev has ended, or does not answer after ${START / 1000} s:\n${output}`);
    }
    await new Promise((done) => setTimeout(done, 200));
  }
  return { folder, origin, output: () => output, stop: () => end(child) };
}
