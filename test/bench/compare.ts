// Interleaved rounds: each round measures every case, so a slow moment of the machine affects all of them alike, and the median
// ignores it. The ratio is taken within a round. Every other round runs backwards, so no case always follows the same one. The
// first rounds warm up and do not count.

export type Side = "floor" | "service";

interface Case {
  /** For the ratio of the service to the floor. */
  goal: number;
  measure: (side: Side) => Promise<number>;
}

const WARM_UP = 3; // rounds

/** Measures the cases and prints the medians. `rounds` must be odd. */
export async function compare(goalIs: "at most" | "at least", cases: Record<string, Case>, rounds: number) {
  const results = Object.entries(cases).map(([name, { goal, measure }]) => {
    const figures: Record<Side, number[]> = { floor: [], service: [] };
    return { name, goal, measure, figures };
  });
  for (let round = 1 - WARM_UP; round <= rounds; round++) {
    const inOrder = <T>(items: T[]) => (round % 2 ? items : items.toReversed());
    for (const { measure, figures } of inOrder(results)) {
      for (const side of inOrder<Side>(["floor", "service"])) {
        const figure = await measure(side);
        if (round > 0) figures[side].push(figure);
      }
    }
  }
  const rows = results.map(({ name, goal, figures: { floor, service } }) => {
    const ratio = median(service.map((figure, round) => figure / (floor[round] ?? Number.NaN)));
    const met = goalIs === "at most" ? ratio <= goal : ratio >= goal;
    return [name, { floor: median(floor), service: median(service), ratio, [goalIs]: goal, met }];
  });
  console.table(Object.fromEntries(rows));
}

const median = (values: number[]) => Number(values.toSorted((a, b) => a - b)[(values.length - 1) / 2]?.toFixed(2));
