// Interleaved rounds: every trial takes its turn in each, so that a slow moment of the machine meets all of them alike,
// and the median forgets it. What is to be compared is measured in one trial, which returns the ratio too: both sides
// of it then met the same moment. Every other round goes backwards, so that no trial always follows the same one.

import { progress } from "./terminal.ts";

interface Rounds {
  rounds: number;
  /** Rounds that come first and do not count. */
  warmUp: number;
}

/** Each trial returns some figures; the median of each figure, in the order of the trials. */
export async function medians(
  what: string,
  trials: (() => Promise<number[]>)[],
  { rounds, warmUp }: Rounds,
): Promise<number[][]> {
  const results: number[][][] = trials.map(() => []);
  const forwards = [...trials.entries()];
  const backwards = forwards.toReversed();
  progress(what);
  for (let round = 1; round <= warmUp + rounds; round++) {
    progress(what, `round ${round} of ${warmUp + rounds}`);
    for (const [index, trial] of round % 2 ? forwards : backwards) {
      const figures = await trial();
      if (round > warmUp) results[index]?.push(figures);
    }
  }
  return results.map(([first = [], ...others]) =>
    first.map((figure, index) => median([figure, ...others.map((figures) => figures[index] ?? Number.NaN)])),
  );
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}
