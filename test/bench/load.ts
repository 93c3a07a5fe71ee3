// Creates and lists in turn over many connections, and then checks that each animal is stored once, exactly as in its response.
// The number of requests is fixed, and each response must arrive in time.

import { listAll } from "../http/send.ts";
import { call, start } from "./runtime.ts";

const ANIMALS = 20_000; // and as many lists
const CONNECTIONS = 64;

/** Makes the process fail if a check fails. */
export async function load(): Promise<void> {
  await using server = await start();
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
  const connection = async () => {
    while (begun < ANIMALS) await createAndList().catch(() => failed++);
  };
  console.log(`\n${ANIMALS} creates and ${ANIMALS} lists over ${CONNECTIONS} connections`);
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  const stored = await listAll(`${pets}?limit=100`);
  // Every name is different: if as many are found as were created and stored, none is lost or stored twice.
  const found = new Set(created).intersection(new Set(stored)).size;
  const checks = {
    "requests that failed": { seen: failed, "must be": 0, met: failed === 0 },
    "animals stored": { seen: stored.length, "must be": ANIMALS, met: stored.length === ANIMALS },
    "stored as answered": { seen: found, "must be": ANIMALS, met: found === ANIMALS },
  };
  console.table(checks);
  if (Object.values(checks).some(({ met }) => !met)) process.exitCode = 1;
}
