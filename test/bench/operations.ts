// The operations whose overhead is measured. To measure one more, add it here, and to worker/floor.ts the least code that
// gives the same answer; nothing else names an operation. Node and the Worker read this, so it has no type of either.

interface Operation {
  /** The most Worker time that it may take, relative to the floor. */
  goal: number;
  /** So many in one batch that it takes tens of milliseconds, beside which the request that asks for it is little. */
  calls: number;
  request: (call: number) => [method: string, path: string, body?: object];
}

/** How many are in the table, with the ids from 1 on. */
export const ANIMALS = 1000;

const animal = (call: number) => ({ name: `Animal ${call}`, categoryId: 7, status: "available" });

export const OPERATIONS: Record<string, Operation> = {
  "list 20": { goal: 1.25, calls: 100, request: () => ["GET", "/v1/pets?limit=20"] },
  "list 100, filtered": { goal: 1.1, calls: 50, request: () => ["GET", "/v1/pets?limit=100&status=available"] },
  get: { goal: 1.4, calls: 200, request: (call) => ["GET", `/v1/pets/${1 + (call % ANIMALS)}`] },
  create: { goal: 1.4, calls: 100, request: (call) => ["POST", "/v1/pets", animal(call)] },
};

/** `none` answers without doing anything: what it takes is the cost of making the requests and calling a handler. */
export type Subject = "service" | "floor" | "none";

/** What Node asks of the Worker: SQL to execute, or a handler to call so many times with an operation's requests. */
export type Command = { sql: string } | { subject: Subject; operation: string; calls: number };
