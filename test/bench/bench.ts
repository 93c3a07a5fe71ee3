// `npm run bench` measures what a request costs and prints a table for each part; `npm run bench -- scale size` only
// these. The load test is a part that is run by its name alone, because it takes its time: `npm run load`.
// Whatever was started ends with this process, and nothing is left in the repository.

import { load } from "./load.ts";
import { overhead } from "./overhead.ts";
import { scale } from "./scale.ts";
import { size } from "./size.ts";
import { throughput } from "./throughput.ts";

const PARTS = { overhead, scale, size, throughput, load };
const BY_DEFAULT = ["overhead", "scale", "size", "throughput"];

// What is running is ended on "exit", which a signal alone does not bring about.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}; there are ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}
for (const [name, part] of Object.entries(PARTS)) {
  if ((named.length > 0 ? named : BY_DEFAULT).includes(name)) await part();
}
