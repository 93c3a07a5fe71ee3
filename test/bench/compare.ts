// Interleaved rounds: every case takes its turn in each, so that a slow moment of the machine meets all of them alike, and
// the median forgets it. The ratio is taken within a round, where both sides met the same moment. Every other round goes
// backwards, cases and sides, so that none always follows the same one. The first rounds warm up, and do not count.

export type Side = "floor" | "service";

interface Case {
  /** For the ratio of the service to the floor. */
  goal: number;
  measure: (side: Side) => Promise<number>;
}

const WARM_UP = 3; // rounds

/** Measures the cases, which are named, and prints the medians; `rounds` is an odd number. */
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
