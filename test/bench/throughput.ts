// Requests per second over HTTP: the service and the floor, each in a runtime as `npm run dev` starts it, on D1.

import { compare, type Side } from "./compare.ts";
import { call, start } from "./runtime.ts";

const GOAL = 0.9;
const CONNECTIONS = [1, 16, 64];
const LIMIT = 20;
const DURATION = 2_000; // milliseconds

export async function throughput(): Promise<void> {
  await using floor = await start("test/bench/worker/floor.ts");
  await using service = await start();
  const pets = { floor: `${floor.origin}/v1/pets`, service: `${service.origin}/v1/pets` };
  for (const url of Object.values(pets)) {
    for (let animal = 1; animal <= LIMIT; animal++)
      await call(url, { name: "Rex", categoryId: animal, status: "sold" });
  }
  const cases = CONNECTIONS.map((connections) => {
    const measure = (side: Side) => requestsPerSecond(`${pets[side]}?limit=${LIMIT}`, connections);
    return [`${connections} at once`, { goal: GOAL, measure }];
  });
  console.log(`\nRequests per second, list ${LIMIT}`);
  await compare("at least", Object.fromEntries(cases), 9);
}

async function requestsPerSecond(url: string, connections: number): Promise<number> {
  const started = performance.now();
  let answered = 0;
  const connection = async () => {
    while (performance.now() - started < DURATION) {
      await (await call(url)).arrayBuffer();
      answered++;
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  return (answered / (performance.now() - started)) * 1000;
}
