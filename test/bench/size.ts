// What has to be loaded before the first request: the script as it is deployed, and how long its top level runs.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { run } from "../command.ts";
import { removeProject } from "../http/dev-server.ts";
import { median } from "./rounds.ts";
import { project } from "./runtime.ts";
import { print, progress, verdict } from "./terminal.ts";

const GOAL = 15; // KiB
const STARTS = 5;

export async function size(): Promise<void> {
  const folder = project();
  progress("size and start");
  await run("wrangler", ["deploy", "--dry-run", "--env", "production", "--outdir", "built"], folder);
  const script = readFileSync(join(folder, "built/index.js"));
  const plain = script.length / 1024;
  const zipped = gzipSync(script).length / 1024;
  const starts: number[] = [];
  for (let start = 1; start <= STARTS; start++) {
    progress("size and start", `start ${start} of ${STARTS}`);
    const report = await run("wrangler", ["check", "startup", "--env", "production"], folder);
    starts.push(Number(/Active: ([\d.]+) ms/.exec(report)?.[1]));
  }
  print(
    `Size and start (goal: at most ${GOAL} KiB gzip)`,
    ["", "", "goal"],
    [
      ["script, minified, KiB", plain.toFixed(1), ""],
      ["script, gzip, KiB", zipped.toFixed(1), verdict(zipped <= GOAL)],
      [`start, ms active, median of ${STARTS}`, median(starts).toFixed(1), ""],
    ],
  );
  removeProject(folder);
}
