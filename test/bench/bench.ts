// `npm run bench` prints what a request costs, in microseconds. `npm run bench -- <folder>` compares that with the
// service of a different checkout, such as a worktree of main: a ratio of 1 means that both cost the same.
//
// The cost is Worker time, without the network and the simulator of D1, which would hide it. Both services run in one
// isolate, each on a database with the migrations of its checkout. They take turns, so a slow moment of the machine
// affects both alike, and the median of all rounds ignores it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig as readConfig } from "wrangler";
import { wrangler } from "../../scripts/wrangler.ts";
import { LOCAL_KEY } from "../dev-server.ts";
import { tablesOf } from "../tables.ts";

const ROUNDS = 81;

/** `calls`: in a batch, of about ten milliseconds, so that the request that starts it hardly counts. */
type Measured = { calls: number; path: string; body?: string };

const OPERATIONS: Record<string, Measured> = {
  "list 20": { calls: 200, path: "/v1/pets?limit=20" },
  "list 100, filtered": { calls: 50, path: "/v1/pets?limit=100&status=available" },
  get: { calls: 200, path: "/v1/pets/500" },
  create: { calls: 100, path: "/v1/pets", body: '{"name":"Rex","categoryId":7,"status":"sold"}' },
};

// What costs most of what callers can send, and of what they can store for others to list.
const WORST_CASE = { calls: 20, path: "/v1/pets" };
// As many unknown parameters as fit into a URL, which Cloudflare limits to 16 KB.
const PARAMETERS = Array.from({ length: 3400 }, (_, i) => `+${i.toString(36)}`);
// V8 hashes these names by their values, so that they collide.
const NAMES = Array.from({ length: 1170 }, (_, i) => `"${((i + 1) * 2 ** 15) % 10 ** 7}":1`);
const OBJECTS = Array(5440).fill("{}");
const WORST_CASES: Record<string, Measured> = {
  query: { ...WORST_CASE, path: `/v1/pets?${PARAMETERS.join("&")}` },
  "body of colliding names": { ...WORST_CASE, body: `{"name":"Rex","categoryId":1,${NAMES.join()}}` },
  "body of objects": { ...WORST_CASE, body: `{"name":"Rex","categoryId":1,"x":[${OBJECTS.join()}]}` },
  "page of quotes": { ...WORST_CASE, path: "/v1/pets?limit=100&after=1000" },
  "page of U+0001": { ...WORST_CASE, path: "/v1/pets?limit=100&after=1100" },
  "page of emoji": { ...WORST_CASE, path: "/v1/pets?limit=100&after=1200" },
};

const FILL = `
  WITH RECURSIVE animal (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM animal WHERE id < 1000)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'Animal ' || id, id % 90, iif(id % 2, 'available', 'pending') FROM animal;`;
// JSON escapes the first two, D1's answer once more, and a wide character makes a string of JavaScript twice as large.
const PAGES = ['"', "\u0001", "😀"].map(
  (character, page) => `
  INSERT INTO pets (id, name, category_id, status)
  SELECT ${1000 + 100 * page} + id, '${character.repeat(999)}😀', id, 'sold' FROM pets WHERE id <= 100;`,
);

/** Builds a script with the settings of this checkout. Returns it as a module with this name. */
function moduleOf(name: string, script: string) {
  wrangler(["deploy", "--env=", "--dry-run", "--outdir", `dist/bench/${name}`, script], { output: "pipe" });
  const built = script.replace(/.*\/(\w+)\.ts$/, "$1.js");
  return {
    type: "ESModule" as const,
    path: `${name}.js`,
    contents: readFileSync(`dist/bench/${name}/${built}`, "utf8"),
  };
}

/** The checkouts, by the name of their service in worker/harness.ts. */
const [other] = process.argv.slice(2);
const checkouts = Object.entries({ service: ".", ...(other && { other }) });

const modules = [moduleOf("harness", "test/bench/worker/harness.ts")];
for (const [name, folder] of checkouts) modules.push(moduleOf(name, join(folder, "src/index.ts")));
const options = convertV4MiniflareOptions({
  modules,
  compatibilityDate: String(readConfig({ config: "wrangler.toml" }).compatibility_date),
  durableObjects: { STORE: { className: "Store", useSQLite: true } },
  bindings: { API_KEY: LOCAL_KEY },
});
const runtime = new Miniflare(options);
const origin = await runtime.ready;
for (const [Service, folder] of checkouts)
  await fetch(origin, { method: "PUT", headers: { Service }, body: [tablesOf(folder), FILL, ...PAGES].join("\n") });

/** The microseconds that each call of a batch takes. `Replayed`: whether statements are executed only once. */
async function timeOf(Service: string, { calls, path, body }: Measured, Replayed = "") {
  const init = { headers: { Service, Replayed, Times: String(calls) }, ...(body && { method: "POST", body }) };
  const send = async () => {
    const response = await fetch(new URL(path, origin), init);
    const answer = await response.text();
    assert(response.ok, answer);
  };
  // Fills the caches.
  await send();
  const before = performance.now();
  await send();
  return ((performance.now() - before) / calls) * 1000;
}

/** Prints the median of what is measured, and the range of the middle half. */
async function print(title: string, all: Record<string, Measured>, digits: number, measure: typeof ratioOf) {
  const rows: Record<string, object> = {};
  for (const [name, one] of Object.entries(all)) {
    const values: number[] = [];
    while (values.length < ROUNDS) values.push(await measure(one));
    values.sort((a, b) => a - b);
    const quartile = (number: number) => Number(values[Math.round(((ROUNDS - 1) * number) / 4)]?.toFixed(digits));
    rows[name] = { median: quartile(2), from: quartile(1), to: quartile(3) };
  }
  console.log(`\n${title}`);
  console.table(rows);
}

async function ratioOf(one: Measured): Promise<number> {
  return (await timeOf("service", one)) / (await timeOf("other", one));
}

if (other) await print(`Worker time per request, divided by that of ${other}`, OPERATIONS, 2, ratioOf);
else await print("Worker time per request, in µs", OPERATIONS, 0, (one) => timeOf("service", one));
const title = "Worker time of the most expensive requests, without that of D1, in µs (the free plan allows 10,000)";
await print(title, WORST_CASES, 0, (one) => timeOf("service", one, "yes"));
await runtime.dispose();
