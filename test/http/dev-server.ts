// The service as `npm run dev` starts it in a fresh copy of the project: nothing of the developer's own local state is
// used or changed.

import { type ChildProcess, execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { launch } from "../command.ts";

/** The key that `npm run dev` sets. */
export const KEY = { Authorization: "Bearer local-key" };

const START = 45_000; // milliseconds

export interface DevServer {
  folder: string;
  /** Such as http://localhost:8787, without a slash at the end. */
  origin: string;
  /** Of npm and all that it has started. */
  processGroup: number;
  /** Ends it: gently, or at once as a power cut would. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
}

/** A folder with what a fresh clone holds, and the packages already installed. */
export function copyProject(): string {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { encoding: "utf8" });
  for (const file of files.trim().split("\n")) cpSync(file, join(folder, file), { force: true });
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"), "junction");
  return folder;
}

export function removeProject(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * Runs `npm run dev` in `folder`, on a free port, until it answers; `options` go to wrangler. Throws with its output when
 * it does not answer. It ends with this process at the latest.
 */
export async function startDev(folder: string, ...options: string[]): Promise<DevServer> {
  const origin = `http://localhost:${await freePort()}`;
  const { port } = new URL(origin);
  const child = launch("npm", ["run", "dev", "--", "--port", port, ...options], folder);
  const { pid } = child;
  if (pid === undefined) throw new Error("npm cannot be run");
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const deadline = Date.now() + START;
  while (!(await answers(origin))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop(child);
      throw new Error(`npm run dev did not start:\n${output}`);
    }
    await new Promise((done) => setTimeout(done, 200));
  }
  return { folder, origin, processGroup: pid, stop: (signal) => stop(child, signal) };
}

async function answers(origin: string): Promise<boolean> {
  // A request that comes while the runtime is started anew may never be answered.
  return fetch(origin, { signal: AbortSignal.timeout(2_000) }).then(
    () => true,
    () => false,
  );
}

/** Ends npm and all that it has started. */
async function stop(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once("exit", done));
  process.kill(-child.pid, signal);
  await ended;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === "string") throw new Error("no free port");
  return address.port;
}
