// `npm run bench` measures the cost of a request and the size of the script, and exits with 1 if a goal is missed.
// `npm run bench -- size` measures one part.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { run } from "../processes.ts";
import { overhead } from "./overhead.ts";

const MAX_SIZE = 24; // KiB
const PARTS = new Map(Object.entries({ overhead, size }));

// Child processes are ended on "exit", which a signal alone does not cause.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
const [, , ...named] = process.argv;
for (const name of named.length > 0 ? named : PARTS.keys()) {
  const part = PARTS.get(name);
  if (!part) throw new Error(`Unknown part ${name}: use ${[...PARTS.keys()].join(", ")}.`);
  if (!(await part())) process.exitCode = 1;
}

/** The size of the deployed script, which a Worker loads before its first request. Returns whether its goal is met. */
async function size(): Promise<boolean> {
  // The account need not have a database of production.
  const env = { SKIP_DEPLOY_CHECK: "true" };
  await run("wrangler", ["deploy", "--dry-run", "--env", "production", "--outdir", "dist/production"], ".", env);
  const service = gzipSync(readFileSync("dist/production/index.js")).length / 1024;
  console.log("\nSize of the deployed script in KiB, gzip");
  const met = service <= MAX_SIZE;
  console.table({ script: { service: Number(service.toFixed(1)), "at most": MAX_SIZE, met } });
  return met;
}
