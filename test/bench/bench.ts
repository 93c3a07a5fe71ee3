// `npm run bench` measures the cost of a request against its goals; `npm run bench -- size` measures one part. The load test
// takes long, so it only runs by name: `npm run load`. Everything that was started ends with this process.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { run } from "../command.ts";
import { load } from "./load.ts";
import { overhead } from "./overhead.ts";
import { project } from "./runtime.ts";
import { throughput } from "./throughput.ts";

const MAX_SIZE = 24; // KiB
const PARTS = { overhead, throughput, size, load };
const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`Unknown part: ${unknown.join(", ")}. The parts are ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}
// Child processes are ended on "exit", which a signal alone does not cause.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
for (const [name, part] of Object.entries(PARTS)) {
  if (named.length > 0 ? named.includes(name) : part !== load) await part();
}

/** The size of the deployed script, which a Worker loads before its first request. */
async function size(): Promise<void> {
  using copy = project();
  const command = ["deploy", "--dry-run", "--env", "production", "--outdir", "built"];
  // The account need not have a database of production.
  await run("wrangler", command, copy.folder, { SKIP_DEPLOY_CHECK: "true" });
  const service = gzipSync(readFileSync(join(copy.folder, "built/index.js"))).length / 1024;
  console.log("\nSize of the deployed script in KiB, gzip");
  console.table({ script: { service: Number(service.toFixed(1)), "at most": MAX_SIZE, met: service <= MAX_SIZE } });
}
