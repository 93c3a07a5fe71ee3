// The cost of the service relative to the floor (worker/floor.ts): Worker time per request, in one isolate and on one
// database, without the network and the simulator of D1, which would hide it. A ratio is taken within a round, so a
// slow moment of the machine affects both sides alike, and the median of all rounds ignores it.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { unstable_readConfig as readConfig } from "wrangler";
import { KEY } from "../dev-server.ts";
import { run } from "../processes.ts";

// `goal`: the most Worker time that the service may take, as a multiple of the floor. `calls`: in one batch, which
// takes about ten milliseconds, so the request that starts it hardly counts. To measure one more operation, add it
// here, and add the least code that gives the same response to worker/floor.ts.
const OPERATIONS = {
  "list 20": { goal: 1.25, calls: 100, path: "/v1/pets?limit=20" },
  "list 100, filtered": { goal: 1.1, calls: 50, path: "/v1/pets?limit=100&status=available" },
  get: { goal: 1.7, calls: 200, path: "/v1/pets/500" },
  create: { goal: 1.7, calls: 100, path: "/v1/pets", body: '{"name":"Rex","categoryId":7,"status":"sold"}' },
};

// As many unknown parameters as fit into a URL, which Cloudflare limits to 16 KB. A request may cost 10 ms on the free
// plan, and the first ones in an isolate cost more than the median.
const PARAMETERS = Array.from({ length: 3400 }, (_, i) => `+${i.toString(36)}`);
const LARGEST = { goal: 2, calls: 20, path: `/v1/pets?${PARAMETERS.join("&")}` };

const FILL = `
  WITH RECURSIVE animal (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM animal WHERE id < 1000)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'Animal ' || id, id % 90, iif(id % 2, 'available', 'pending') FROM animal;`;

const WARM_UP = 3; // rounds
const ROUNDS = 41; // odd, so that the median is one of them

// `none` responds without doing anything: it measures the cost of creating the requests and calling a handler.
const SUBJECTS = ["none", "floor", "service"] as const;

/** Measures every operation and prints the medians. */
export async function overhead(): Promise<void> {
  await run("wrangler", ["deploy", "--dry-run", "--outdir", "dist/bench", "test/bench/worker/harness.ts"]);
  const options = convertV4MiniflareOptions({
    modules: true,
    script: readFileSync("dist/bench/index.js", "utf8"),
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

  const rows: Record<string, object> = {};
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

  const { goal, calls, path } = LARGEST;
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = performance.now();
    await send(path, { headers: { ...KEY, Subject: "service", Times: String(calls) } });
    times.push((performance.now() - before) / calls);
  }
  const service = median(times);
  console.log("\nWorker time of the largest query in ms");
  console.table({ "many parameters": { service, "at most": goal, met: service <= goal } });
  await runtime.dispose();
}

const median = (values: number[]) => Number(values.toSorted((a, b) => a - b)[(values.length - 1) / 2]?.toFixed(2));
