// What a request costs as the table grows: rows, as D1 counts and bills them, and Worker time.

import { OPERATIONS, type Operation } from "./batch.ts";
import { medians } from "./rounds.ts";
import { startStores } from "./stores.ts";
import { print, verdict } from "./terminal.ts";

const GOAL = 1.2;
const SIZES = [1000, 100_000, 1_000_000];
const MEASURED = Object.keys(OPERATIONS) as Operation[];

export async function scale(): Promise<void> {
  await using stores = await startStores(SIZES);
  const trials = MEASURED.map((operation) => async () => {
    const times: number[] = [];
    for (const size of SIZES) times.push(await stores.time({ subject: "service", operation, size }));
    return times.map((time, _, [smallest = Number.NaN]) => time / smallest);
  });
  const figures = await medians("scale", trials, { rounds: 15, warmUp: 2 });
  const rows: string[][] = [];
  for (const [index, operation] of MEASURED.entries()) {
    const counts: string[] = [];
    for (const size of SIZES) {
      const { read, written } = await stores.rows({ subject: "service", operation, size });
      counts.push(written === 0 ? `${read}` : `${read} + ${written}`);
    }
    const ratios = figures[index] ?? [];
    const met = new Set(counts).size === 1 && ratios.every((ratio) => ratio <= GOAL);
    rows.push([OPERATIONS[operation], ...counts, ...ratios.map((ratio) => ratio.toFixed(2)), verdict(met)]);
  }
  const sizes = SIZES.map((size) => size.toLocaleString("en"));
  print(
    `Scale: rows read + written per request, and time relative to ${sizes[0]} animals (goal: same rows, ${GOAL} ×)`,
    ["animals", ...sizes.map((size) => `rows ${size}`), ...sizes.map((size) => `× ${size}`), "goal"],
    rows,
  );
}
