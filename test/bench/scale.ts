// What a request costs as the table grows: rows, as D1 counts and bills them, and Worker time.

import { type Call, OPERATIONS, type Operation } from "./batch.ts";
import { startStores } from "./stores.ts";
import { print, verdict } from "./terminal.ts";

const GOAL = 1.2;
const SIZES = [1000, 100_000, 1_000_000];
const MEASURED = Object.keys(OPERATIONS) as Operation[];

export async function scale(): Promise<void> {
  await using stores = await startStores(SIZES);
  const calls = MEASURED.flatMap((operation) => SIZES.map((size): Call => ({ subject: "service", operation, size })));
  const times = await stores.times("scale", calls, { rounds: 11, warmUp: 2 });
  const counts: string[] = [];
  for (const call of calls) {
    const { read, written } = await stores.rows(call);
    counts.push(written === 0 ? `${read}` : `${read} + ${written}`);
  }
  const rows = MEASURED.map((operation, index) => {
    const own = <T>(values: T[]) => values.slice(index * SIZES.length, (index + 1) * SIZES.length);
    const ratios = own(times).map((time, _, [smallest = Number.NaN]) => time / smallest);
    const met = new Set(own(counts)).size === 1 && ratios.every((ratio) => ratio <= GOAL);
    return [OPERATIONS[operation], ...own(counts), ...ratios.map((ratio) => ratio.toFixed(2)), verdict(met)];
  });
  const sizes = SIZES.map((size) => size.toLocaleString("en"));
  print(
    `Scale: rows read + written per request, and time relative to ${sizes[0]} animals (goal: same rows, ${GOAL} ×)`,
    ["animals", ...sizes.map((size) => `rows ${size}`), ...sizes.map((size) => `× ${size}`), "goal"],
    rows,
  );
}
