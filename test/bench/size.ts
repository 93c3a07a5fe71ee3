// What has to be loaded before the first request: the script as it is deployed.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { run } from "../command.ts";
import { project } from "./runtime.ts";

const GOAL = 15; // KiB

export async function size(): Promise<void> {
  using copy = project();
  await run("wrangler", ["deploy", "--dry-run", "--env", "production", "--outdir", "built"], copy.folder);
  const service = gzipSync(readFileSync(join(copy.folder, "built/index.js"))).length / 1024;
  console.log("\nSize of the script in KiB, minified and gzip");
  console.table({ script: { service: Number(service.toFixed(1)), "at most": GOAL, met: service <= GOAL } });
}
