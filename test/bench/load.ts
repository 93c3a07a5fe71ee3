// Creates and lists in turn over many connections, and then checks that each animal is stored once, exactly as in its response.
// The number of requests is fixed, and each response must arrive in time.

import { copyProject, KEY, removeProject, startDev } from "../end-to-end/dev-server.ts";
import { listAll } from "../end-to-end/send.ts";

const ANIMALS = 20_000; // and as many lists
const CONNECTIONS = 64;
const TIMEOUT = 30_000; // milliseconds

/** Throws if a request failed, or if an animal is lost, stored twice or different. */
export async function load(): Promise<void> {
  const folder = copyProject();
  process.once("exit", () => removeProject(folder));
  const server = await startDev(folder, "--log-level", "warn"); // without a line for each request
  const pets = `${server.origin}/v1/pets`;
  const headers = { ...KEY, "Content-Type": "application/json" };
  const call = async (url: string, init: RequestInit) => {
    const response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(TIMEOUT) });
    if (!response.ok) throw new Error(`${url} failed: ${await response.text()}`);
    return response.text();
  };
  const created: string[] = [];
  let begun = 0;
  let failed = 0;
  const createAndList = async () => {
    const body = JSON.stringify({ name: `Animal ${++begun}`, categoryId: 1 });
    created.push(await call(pets, { method: "POST", body }));
    await call(`${pets}?after=${Math.floor(Math.random() * created.length)}`, {});
  };
  const connection = async () => {
    while (begun < ANIMALS) await createAndList().catch(() => failed++);
  };
  console.log(`\n${ANIMALS} creates and ${ANIMALS} lists over ${CONNECTIONS} connections`);
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  const stored = await listAll(`${pets}?limit=100`);
  await server.stop();
  // Every name is different: if as many are found as were created and stored, none is lost or stored twice.
  const found = new Set(created).intersection(new Set(stored)).size;
  console.table({ failed, stored: stored.length, "stored as answered": found });
  if (failed > 0 || stored.length !== ANIMALS || found !== ANIMALS) {
    throw new Error(`No request may fail, and each of the ${ANIMALS} animals must be stored once, as answered.`);
  }
}
