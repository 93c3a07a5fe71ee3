// The requests of the operations. Where an operation reads one place, each call reads another one, all over the table,
// so that a big table cannot hide behind one cached page.

import { type Operation, RARE } from "../batch.ts";

const PETS = "https://store.example/v1/pets";

const PATHS: Record<Exclude<Operation, "create">, (size: number, call: number) => string> = {
  first: () => "?limit=20",
  deep: (size, call) => `?limit=20&after=${size / 2 + place(call, size / 4)}`,
  filtered: () => "?limit=100&status=available",
  rare: () => `?limit=20&status=${RARE.status}`,
  get: (size, call) => `/${place(call, size)}`,
};

/** An id from 1 to `size`, as if drawn at random, and the same for the same call: Knuth's multiplicative hash. */
function place(call: number, size: number): number {
  return 1 + ((Math.imul(call, 2654435761) >>> 0) % size);
}

export function requestOf(operation: Operation, size: number, call: number, key: string): Request {
  const headers = { Authorization: `Bearer ${key}` };
  if (operation !== "create") return new Request(PETS + PATHS[operation](size, call), { headers });
  const body = JSON.stringify({ name: `Animal ${call}`, categoryId: 7, status: "available" });
  // With a Content-Length, as every caller's HTTP library sends it.
  const entity = { "Content-Type": "application/json", "Content-Length": String(body.length) };
  return new Request(PETS, { method: "POST", headers: { ...headers, ...entity }, body });
}
