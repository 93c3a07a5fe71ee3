// `npm run bench` measures the cost of a request, and exits with 1 if one of the most expensive costs too much.
//
// The cost is Worker time, in one isolate and on one database, without the network and the simulator of D1, which would
// hide it. A multiple of the floor (worker/floor.ts) is taken within a round, so a slow moment of the machine affects
// both sides alike, and the median of all rounds ignores it. Multiples still depend on the machine, so they are only
// printed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig as readConfig } from "wrangler";
import { LOCAL_KEY } from "../dev-server.ts";
import { run } from "../processes.ts";
import { TABLES } from "../tables.ts";

const ROUNDS = 41; // odd, for the median

/** `calls`: in a batch, of about ten milliseconds, so that the request that starts it hardly counts. */
type Measured = { calls: number; path: string; body?: string };

// To measure one more operation, add it here, and add the least code that gives the same response to worker/floor.ts.
const OPERATIONS: Record<string, Measured> = {
  "list 20": { calls: 100, path: "/v1/pets?limit=20" },
  "list 100, filtered": { calls: 50, path: "/v1/pets?limit=100&status=available" },
  get: { calls: 200, path: "/v1/pets/500" },
  create: { calls: 100, path: "/v1/pets", body: '{"name":"Rex","categoryId":7,"status":"sold"}' },
};

// What costs most of what callers can send, and of what they can store for others to list.
const WORST_CASE = { calls: 20, path: "/v1/pets" };
const LIMIT = 10; // milliseconds of CPU time that a request may take on the free plan
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
const fillPage = (character: string) =>
  `INSERT INTO pets (name, category_id, status)
  SELECT '${character.repeat(999)}😀', id, 'sold' FROM pets LIMIT 100;`;
// JSON escapes the first two, D1's answer once more, and a wide character makes a string of JavaScript twice as large.
const PAGES = ['"', "\u0001", "😀"].map(fillPage);

await run("wrangler", ["deploy", "--dry-run", "--outdir", "dist/bench", "test/bench/worker/harness.ts"]);
const options = convertV4MiniflareOptions({
  modules: true,
  script: readFileSync("dist/bench/harness.js", "utf8"),
  compatibilityDate: String(readConfig({ config: "wrangler.toml" }).compatibility_date),
  durableObjects: { STORE: { className: "Store", useSQLite: true } },
  bindings: { API_KEY: LOCAL_KEY },
});
const runtime = new Miniflare(options);
const origin = await runtime.ready;
await fetch(origin, { method: "PUT", body: [TABLES, FILL, ...PAGES].join("\n") });

/** The last response of a batch, and the milliseconds that each call took. */
async function call(subject: string, { calls, path, body }: Measured) {
  const init = { headers: { Subject: subject, Times: String(calls) }, ...(body && { method: "POST", body }) };
  const send = async () => {
    const response = await fetch(new URL(path, origin), init);
    assert(response.ok, path);
    return response.text();
  };
  // Fills the caches.
  await send();
  const before = performance.now();
  const answer = await send();
  return { answer, time: (performance.now() - before) / calls };
}

async function multipleOf(measured: Measured): Promise<number> {
  // The cost of creating the requests and calling a handler.
  const none = await call("none", measured);
  const floor = await call("floor", measured);
  const service = await call("service", measured);
  const [expected, answer] = [floor, service].map((called) => called.answer.replaceAll(/"id":\d+/g, ""));
  assert.equal(answer, expected, "The floor responds differently, apart from ids.");
  return (service.time - none.time) / (floor.time - none.time);
}

async function medianOf(measure: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  while (values.length < ROUNDS) values.push(await measure());
  return values.toSorted((a, b) => a - b)[(ROUNDS - 1) / 2] ?? Number.NaN;
}

/** Prints the medians of what is measured, and returns them. */
async function printMedians(title: string, all: Record<string, Measured>, measure: (one: Measured) => Promise<number>) {
  const medians: Record<string, number> = {};
  for (const [name, one] of Object.entries(all))
    medians[name] = Number((await medianOf(() => measure(one))).toFixed(2));
  console.log(`\n${title}`);
  console.table(medians);
  return Object.values(medians);
}

await printMedians("Worker time per request, as a multiple of the floor", OPERATIONS, multipleOf);
const timeOf = async (one: Measured) => (await call("service alone", one)).time;
const times = await printMedians(
  `Worker time of the most expensive requests (limit: ${LIMIT} ms)`,
  WORST_CASES,
  timeOf,
);
if (times.some((time) => time > LIMIT)) process.exitCode = 1;
await runtime.dispose();
