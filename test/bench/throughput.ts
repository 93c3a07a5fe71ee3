// Requests per second over HTTP: the service and the floor, each in a runtime as `npm run dev` starts it, on D1.

import { run } from "../command.ts";
import { KEY } from "../http/dev-server.ts";
import { create } from "./calls.ts";
import { medians } from "./rounds.ts";
import { start } from "./runtime.ts";
import { print, progress, verdict } from "./terminal.ts";

const GOAL = 0.9;
const CONNECTIONS = [1, 16, 64];
const DURATION = 2; // seconds
const LIMIT = 20;

export async function throughput(): Promise<void> {
  progress("starting two runtimes");
  await using floor = await start("test/bench/worker/floor.ts");
  await using service = await start();
  for (const { origin } of [floor, service]) {
    for (let animal = 0; animal <= LIMIT; animal++) {
      const { ok, body } = await create(origin, "Rex");
      if (!ok) throw new Error(`createPet failed: ${body}`);
    }
  }
  const trials = CONNECTIONS.map((connections) => async () => {
    const least = await requestsPerSecond(floor.origin, connections);
    const ours = await requestsPerSecond(service.origin, connections);
    return [least, ours, ours / least];
  });
  const figures = await medians("throughput", trials, { rounds: 9, warmUp: 1 });
  const rows = CONNECTIONS.map((connections, index) => {
    const [least = Number.NaN, ours = Number.NaN, ratio = Number.NaN] = figures[index] ?? [];
    return [`${connections}`, least.toFixed(0), ours.toFixed(0), ratio.toFixed(2), verdict(ratio >= GOAL)];
  });
  print(
    `Throughput: requests per second, list ${LIMIT} (goal: at least ${GOAL} × the floor)`,
    ["connections", "floor", "service", "ratio", "goal"],
    rows,
  );
}

interface Report {
  "2xx": number;
  duration: number;
  non2xx: number;
  errors: number;
}

async function requestsPerSecond(origin: string, connections: number): Promise<number> {
  const options = [
    "--connections",
    connections,
    "--duration",
    DURATION,
    "--headers",
    `Authorization=${KEY.Authorization}`,
  ];
  const output = await run("autocannon", [
    ...options.map(String),
    "--json",
    "--no-progress",
    `${origin}/v1/pets?limit=${LIMIT}`,
  ]);
  const { "2xx": answered, duration, non2xx, errors } = JSON.parse(output) as Report;
  if (non2xx + errors > 0) throw new Error(`${non2xx} requests failed, and ${errors} connections`);
  return answered / duration;
}
