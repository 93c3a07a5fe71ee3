// The operations whose overhead is measured. To measure one more, add it here, and add the least code that gives the same
// response to worker/floor.ts. Node and the Worker both read this file, so it uses no types of either.

interface Operation {
  /** The most Worker time that it may take, as a multiple of the floor. */
  goal: number;
  /** Calls in one batch. A batch takes tens of milliseconds, so the request that starts it hardly counts. */
  calls: number;
  request: (call: number) => [method: string, path: string, body?: object];
}

/** The number of animals in the table, whose ids start at 1. */
export const ANIMALS = 1000;

const animal = (call: number) => ({ name: `Animal ${call}`, categoryId: 7, status: "available" });

export const OPERATIONS: Record<string, Operation> = {
  "list 20": { goal: 1.25, calls: 100, request: () => ["GET", "/v1/pets?limit=20"] },
  "list 100, filtered": { goal: 1.1, calls: 50, request: () => ["GET", "/v1/pets?limit=100&status=available"] },
  get: { goal: 1.4, calls: 200, request: (call) => ["GET", `/v1/pets/${1 + (call % ANIMALS)}`] },
  create: { goal: 1.7, calls: 100, request: (call) => ["POST", "/v1/pets", animal(call)] },
};

/** `none` responds without doing anything: it measures the cost of creating the requests and calling a handler. */
export type Subject = "service" | "floor" | "none";

/** What Node tells the Worker to do: execute SQL, or call a handler repeatedly with the requests of an operation. */
export type Command = { sql: string } | { subject: Subject; operation: string; calls: number };
