// Creates and lists by turns, over many connections, and then whether each animal is stored once, as its caller was told.
// It ends by itself: the requests are counted, and each has to be answered in time.

import { on, once } from "node:events";
import { freePort } from "../http/dev-server.ts";
import { call, start } from "./runtime.ts";

const ANIMALS = 20_000; // and as many lists
const CONNECTIONS = 64;
const FLAT = 1.1; // the Worker's memory after all requests, relative to after half of them

/** Makes the process fail where anything is not as it must be. */
export async function load(): Promise<void> {
  const inspector = await freePort();
  await using server = await start("--inspector-port", `${inspector}`);
  const pets = `${server.origin}/v1/pets`;
  const created: string[] = [];
  let begun = 0;
  let failed = 0;
  const createAndList = async () => {
    const creation = await call(pets, { name: `Animal ${++begun}`, categoryId: 1 });
    created.push(await creation.text());
    const list = await call(`${pets}?after=${Math.floor(Math.random() * created.length)}`);
    await list.text();
  };
  const createUntil = async (animals: number) => {
    const connection = async () => {
      while (begun < animals) await createAndList().catch(() => failed++);
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, connection));
    return memoryInUse(inspector, pets);
  };
  console.log(`\n${ANIMALS} creates and ${ANIMALS} lists over ${CONNECTIONS} connections`);
  const memoryAtHalf = await createUntil(ANIMALS / 2);
  const growth = (await createUntil(ANIMALS)) / memoryAtHalf;
  const stored = await allAnimals(pets);
  // Each has another name: where as many are found as were created and are stored, none is lost and none is stored twice.
  const found = new Set(created).intersection(new Set(stored)).size;
  const checks = {
    "requests that failed": { seen: failed, "must be": 0, met: failed === 0 },
    "animals stored": { seen: stored.length, "must be": ANIMALS, met: stored.length === ANIMALS },
    "stored as answered": { seen: found, "must be": ANIMALS, met: found === ANIMALS },
    "memory, relative to half-time": { seen: Number(growth.toFixed(2)), "at most": FLAT, met: growth <= FLAT },
  };
  console.table(checks);
  if (Object.values(checks).some(({ met }) => !met)) process.exitCode = 1;
}

/** Each as JSON text. */
async function allAnimals(pets: string): Promise<string[]> {
  const animals: string[] = [];
  let next: string | undefined = `${pets}?limit=100`;
  while (next !== undefined) {
    const page = await call(next);
    for (const animal of (await page.json()) as object[]) animals.push(JSON.stringify(animal));
    next = /<(.+)>; rel="next"/.exec(page.headers.get("Link") ?? "")?.[1];
  }
  return animals;
}

/**
 * The bytes that the Worker's isolate holds after a garbage collection, by the Chrome DevTools protocol. A collection waits
 * until requests wake the isolate, so some are sent to `url`.
 */
async function memoryInUse(inspector: number, url: string): Promise<number> {
  // Wrangler asks for an Origin, which the types of a Worker's WebSocket do not know.
  const options = [`ws://127.0.0.1:${inspector}/ws`, { headers: { Origin: "http://localhost" } }];
  const socket: WebSocket = Reflect.construct(WebSocket, options);
  await once(socket, "open");
  const messages = on(socket, "message", { signal: AbortSignal.timeout(30_000) });
  socket.send('{"id": 1, "method": "HeapProfiler.collectGarbage"}');
  for (let request = 1; request <= 10; request++) await (await call(url)).text();
  for await (const [{ data }] of messages) {
    const { id, result } = JSON.parse(data);
    if (id === 1) socket.send('{"id": 2, "method": "Runtime.getHeapUsage"}');
    if (id !== 2) continue;
    socket.close();
    return result.usedSize;
  }
  throw new Error("The runtime does not tell how much memory is in use");
}
