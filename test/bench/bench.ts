// `npm run bench` measures what a request costs beside its goals; `npm run bench -- size` measures one part. The load test
// is run by its name alone, because it takes its time: `npm run load`. Whatever was started ends with this process.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { run } from "../command.ts";
import { load } from "./load.ts";
import { overhead } from "./overhead.ts";
import { project } from "./runtime.ts";
import { throughput } from "./throughput.ts";

const LARGEST = 24; // KiB
const PARTS = { overhead, throughput, size, load };
const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}; there are ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}
// What is running is ended on "exit", which a signal alone does not bring about.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
for (const [name, part] of Object.entries(PARTS)) {
  if (named.length > 0 ? named.includes(name) : part !== load) await part();
}

/** What has to be loaded before the first request: the script as it is deployed. */
async function size(): Promise<void> {
  using copy = project();
  await run("wrangler", ["deploy", "--dry-run", "--env", "production", "--outdir", "built"], copy.folder);
  const service = gzipSync(readFileSync(join(copy.folder, "built/index.js"))).length / 1024;
  console.log("\nSize of the script in KiB, minified and gzip");
  console.table({ script: { service: Number(service.toFixed(1)), "at most": LARGEST, met: service <= LARGEST } });
}
