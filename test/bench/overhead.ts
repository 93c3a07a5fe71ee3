// What the service costs beside the floor: Worker time per request, in one isolate and on one database.

import assert from "node:assert/strict";
import { OPERATIONS, type Operation } from "./batch.ts";
import { medians } from "./rounds.ts";
import { type Stores, startStores } from "./stores.ts";
import { print, verdict } from "./terminal.ts";

const GOAL = 1.25;
const SIZE = 1000;
const MEASURED: Operation[] = ["first", "filtered", "create", "get"];

export async function overhead(): Promise<void> {
  await using stores = await startStores([SIZE]);
  await assertSameAnswers(stores);
  const trials = MEASURED.map((operation) => async () => {
    const floor = await stores.time({ subject: "floor", operation, size: SIZE });
    const service = await stores.time({ subject: "service", operation, size: SIZE });
    return [floor, service, service / floor];
  });
  const figures = await medians("overhead", trials, { rounds: 41, warmUp: 5 });
  const rows = MEASURED.map((operation, index) => {
    const [floor = Number.NaN, service = Number.NaN, ratio = Number.NaN] = figures[index] ?? [];
    return [OPERATIONS[operation], floor.toFixed(1), service.toFixed(1), ratio.toFixed(2), verdict(ratio <= GOAL)];
  });
  print(
    `Overhead: Worker time per request (goal: at most ${GOAL} × the floor)`,
    ["", "floor µs", "service µs", "ratio", "goal"],
    rows,
  );
}

/** A comparison means nothing unless both do the same work. */
async function assertSameAnswers(stores: Stores): Promise<void> {
  for (const operation of MEASURED) {
    const floor: unknown = JSON.parse(await stores.answer({ subject: "floor", operation, size: SIZE }));
    const service: unknown = JSON.parse(await stores.answer({ subject: "service", operation, size: SIZE }));
    assert.deepEqual(service, floor, `${operation}: the service answers otherwise than the floor`);
  }
}
