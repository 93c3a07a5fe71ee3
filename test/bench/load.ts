// Creates and lists by turns, over many connections, and then whether every animal is there: none lost, none twice, no
// id twice. It ends by itself: the requests are counted, and each has to be answered in time.

import { run } from "../command.ts";
import { call, create } from "./calls.ts";
import { start } from "./runtime.ts";
import { print, progress, verdict } from "./terminal.ts";

// And as many lists. The runtime fills its heap for the first half, before it collects as much as it takes.
const ANIMALS = 20_000;
const FLAT = 1.1; // the last quarter's memory, relative
const CONNECTIONS = 64;

interface Animal {
  id: number;
  name: string;
}

/** Makes the process fail where anything is not as it must be. */
export async function load(): Promise<void> {
  progress("load: starting a runtime");
  await using server = await start();
  const { created, failed, seconds, memory } = await createAndList(server.origin, () => megabytes(server.processGroup));
  progress("load: reading all animals");
  const stored = await allAnimals(server.origin);

  const names = new Map(stored.map(({ id, name }) => [id, name]));
  const counts: [string, number, number][] = [
    ["requests that failed", failed, 0],
    ["animals created", created.length, ANIMALS],
    ["their ids", new Set(created.map(({ id }) => id)).size, ANIMALS],
    ["animals stored", stored.length, ANIMALS],
    ["animals lost or altered", created.filter(({ id, name }) => names.get(id) !== name).length, 0],
    ["animals stored twice", stored.length - new Set(names.values()).size, 0],
  ];
  const flat = memory.end <= memory.before * FLAT;
  print(
    `Load: ${ANIMALS} creates and ${ANIMALS} lists at ${CONNECTIONS} connections, in ${seconds.toFixed(0)} s`,
    ["", "seen", "must be", ""],
    [
      ...counts.map(([what, seen, goal]) => [what, `${seen}`, `${goal}`, verdict(seen === goal)]),
      ["memory of the runtime after three quarters, MiB", memory.before.toFixed(0), "", ""],
      ["memory of the runtime at the end, MiB", memory.end.toFixed(0), `${FLAT} ×`, verdict(flat)],
    ],
  );
  if (!flat || counts.some(([, seen, goal]) => seen !== goal)) process.exitCode = 1;
}

async function createAndList(origin: string, measureMemory: () => Promise<number>) {
  const created: Animal[] = [];
  let failed = 0;
  let begun = 0;
  let before = Number.NaN;
  const connection = async () => {
    while (begun < ANIMALS) {
      const animal = begun++;
      if (animal % 100 === 0) progress("load", `${animal} of ${ANIMALS} animals`);
      if (animal === ANIMALS * 0.75) before = await measureMemory();
      const creation = await create(origin, `Animal ${animal}`);
      if (creation.ok) created.push(creation.body as Animal);
      const list = await call(`${origin}/v1/pets?after=${Math.floor(Math.random() * created.length)}`);
      for (const { ok } of [creation, list]) if (!ok) failed++;
    }
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  const seconds = (performance.now() - begin) / 1000;
  return { created, failed, seconds, memory: { before, end: await measureMemory() } };
}

async function allAnimals(origin: string): Promise<Animal[]> {
  const animals: Animal[] = [];
  let next: string | undefined = `${origin}/v1/pets?limit=100`;
  while (next !== undefined) {
    const { ok, headers, body } = await call(next);
    if (!ok) throw new Error(`${next} failed`);
    animals.push(...(body as Animal[]));
    next = /<(.+)>; rel="next"/.exec(headers.get("Link") ?? "")?.[1];
  }
  return animals;
}

/** The resident memory of every workerd in the process group. */
async function megabytes(group: number): Promise<number> {
  const processes = (await run("ps", ["-A", "-o", "pgid=,rss=,comm="]))
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
  const sizes = processes
    .filter(([id, , name]) => Number(id) === group && name?.endsWith("workerd"))
    .map(([, kibibytes]) => Number(kibibytes) / 1024);
  return sizes.reduce((total, size) => total + size, 0);
}
