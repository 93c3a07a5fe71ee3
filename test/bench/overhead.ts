// The cost of the service relative to the floor (worker/floor.ts): Worker time per request, in one isolate and on one
// database, without the network and the simulator of D1, which would hide it. A ratio is taken within a round, so a
// slow moment of the machine affects both sides alike, and the median of all rounds ignores it.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig as readConfig } from "wrangler";
import { KEY } from "../dev-server.ts";
import { run } from "../processes.ts";

// `goal`: the most Worker time that the service may take, as a multiple of the floor. It has room for a fifth, by which
// the ratios vary between machines and runs: to see a small change, compare runs of both versions. `calls`: in one
// batch, which takes about ten milliseconds, so the request that starts it hardly counts. To measure one more
// operation, add it here, and add the least code that gives the same response to worker/floor.ts.
const OPERATIONS = {
  "list 20": { goal: 1.5, calls: 100, path: "/v1/pets?limit=20" },
  "list 100, filtered": { goal: 1.3, calls: 50, path: "/v1/pets?limit=100&status=available" },
  get: { goal: 2.2, calls: 200, path: "/v1/pets/500" },
  create: { goal: 2.3, calls: 100, path: "/v1/pets", body: '{"name":"Rex","categoryId":7,"status":"sold"}' },
};

// What costs most of what callers can send, and of what they can store for others to list. On the free plan a request
// may take 10 ms of CPU time, and the first ones in an isolate take longer than the median.
const MOST = 10; // milliseconds
// JSON escapes these, D1's answer once more, and one wide character makes a string of JavaScript twice as large.
const ESCAPED = { quotes: `'"'`, "U+0001": "char(1)", emoji: "'😀'" };

// As many unknown parameters as fit into a URL, which Cloudflare limits to 16 KB.
const PARAMETERS = Array.from({ length: 3400 }, (_, i) => `+${i.toString(36)}`);
// V8 hashes these names by their values, so that they collide.
const NAMES = Array.from({ length: 1170 }, (_, i) => `"${((i + 1) * 2 ** 15) % 10 ** 7}":1`);
const DEAREST: Record<string, { path: string; body?: string }> = {
  query: { path: `/v1/pets?${PARAMETERS.join("&")}` },
  "body of colliding names": { path: "/v1/pets", body: `{"name":"Rex","categoryId":1,${NAMES.join(",")}}` },
  "body of objects": {
    path: "/v1/pets",
    body: `{"name":"Rex","categoryId":1,"x":[${Array(5440).fill("{}").join(",")}]}`,
  },
  ...Object.fromEntries(
    Object.keys(ESCAPED).map((name, page) => [
      `page of ${name}`,
      { path: `/v1/pets?limit=100&after=${1000 + page * 100}` },
    ]),
  ),
};

const FILL = `
  WITH RECURSIVE animal (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM animal WHERE id < 1000)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'Animal ' || id, id % 90, iif(id % 2, 'available', 'pending') FROM animal;
  ${Object.values(ESCAPED)
    .map((character) => {
      const name = `substr(replace(hex(zeroblob(500)), '0', ${character}), 2) || '😀'`;
      return `INSERT INTO pets (name, category_id, status) SELECT ${name}, id, 'sold' FROM pets LIMIT 100;`;
    })
    .join("\n")}`;

type Measured = { floor?: number; service: number; ratio?: number; "at most": number; met: boolean };

const WARM_UP = 3; // rounds
const CALLS = 20; // in one batch of the dearest requests
const ROUNDS = 41; // odd, so that the median is one of them

// `none` responds without doing anything: it measures the cost of creating the requests and calling a handler.
const SUBJECTS = ["none", "floor", "service"] as const;

/** Measures every operation and prints the medians. Returns whether all goals are met. */
export async function overhead(): Promise<boolean> {
  await run("wrangler", ["deploy", "--dry-run", "--outdir", "dist/bench", "test/bench/worker/harness.ts"]);
  const options = convertV4MiniflareOptions({
    modules: true,
    script: readFileSync("dist/bench/harness.js", "utf8"),
    compatibilityDate: String(readConfig({ config: "wrangler.toml" }).compatibility_date),
    durableObjects: { STORE: { className: "Store", useSQLite: true } },
    bindings: { API_KEY: KEY.Authorization.replace("Bearer ", ""), VERSION: { id: "bench" } },
  });
  const runtime = new Miniflare(options);
  const origin = await runtime.ready;
  const send = async (path: string, init: RequestInit) => {
    const response = await fetch(new URL(path, origin), init);
    const answer = await response.text();
    if (!response.ok) throw new Error(`${path} failed:\n${answer}`);
    return answer;
  };
  const migrations = globSync("migrations/*.sql").sort();
  await send("/", { method: "PUT", body: migrations.map((file) => readFileSync(file, "utf8")).join("\n") + FILL });

  const rows: Record<string, Measured> = {};
  for (const [name, { goal, calls, path, ...entity }] of Object.entries(OPERATIONS)) {
    const method = "body" in entity ? "POST" : "GET";
    const repeat = (subject: string, times: number) =>
      send(path, { method, ...entity, headers: { ...KEY, Subject: subject, Times: String(times) } });
    const timeOf = async (subject: string) => {
      const before = performance.now();
      await repeat(subject, calls);
      return ((performance.now() - before) * 1000) / calls;
    };
    assert.equal(await repeat("floor", 1), await repeat("service", 1), `${name}: the floor responds differently`);
    const rounds: { floor: number; service: number }[] = [];
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      const times = { none: 0, floor: 0, service: 0 };
      // Every other round runs backwards, so no subject always follows the same one.
      for (const subject of round % 2 ? SUBJECTS : SUBJECTS.toReversed()) {
        // A first, discarded batch fills the caches.
        await timeOf(subject);
        times[subject] = await timeOf(subject);
      }
      if (round >= 0) rounds.push({ floor: times.floor - times.none, service: times.service - times.none });
    }
    const floor = median(rounds.map((round) => round.floor));
    const service = median(rounds.map((round) => round.service));
    const ratio = median(rounds.map((round) => round.service / round.floor));
    rows[name] = { floor, service, ratio, "at most": goal, met: ratio <= goal };
  }
  console.log("\nWorker time per request in µs");
  console.table(rows);

  const dearest: typeof rows = {};
  for (const [name, { path, ...entity }] of Object.entries(DEAREST)) {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = performance.now();
      const headers = { ...KEY, Subject: "service", Times: String(CALLS), "Worker-Only": "" };
      await send(path, { method: entity.body ? "POST" : "GET", ...entity, headers });
      times.push((performance.now() - before) / CALLS);
    }
    const service = median(times);
    dearest[name] = { service, "at most": MOST, met: service <= MOST };
  }
  console.log("\nWorker time of the dearest requests in ms");
  console.table(dearest);
  await runtime.dispose();
  return [...Object.values(rows), ...Object.values(dearest)].every(({ met }) => met);
}

const median = (values: number[]) => Number(values.toSorted((a, b) => a - b)[(values.length - 1) / 2]?.toFixed(2));
