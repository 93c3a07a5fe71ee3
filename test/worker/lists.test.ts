// Common rules for every operation that lists pages: its links lead through all items once and in order, and a page reads at
// most one row more than it shows. A POST to the same path adds items.

import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { type DescribedOperation, nextPage, operations } from "../conformance.ts";
import { intercepted } from "./binding.ts";
import { type Answer, call, ORIGIN, requestTo } from "./service.ts";

const lists = operations.filter(({ parameters }) => parameters.some(({ name }) => name === "limit"));

/** Adds `count` items to the list, each with the values of the example. */
async function fill({ path }: DescribedOperation, count: number): Promise<void> {
  const creation = operations.find((operation) => operation.path === path && operation.method === "POST");
  if (!creation) return expect.fail(`no operation adds to ${path}`);
  for (let i = 0; i < count; i++) expect((await call(...requestTo(creation))).status).toBe(201);
}

const idsOf = ({ text }: Answer): number[] => JSON.parse(text).map(({ id }: { id: number }) => id);

it("every GET that returns an array is a list of pages", () => {
  const arrays = operations.filter(({ responses }) =>
    Array.isArray(responses[200]?.content?.["application/json"].example),
  );
  expect(arrays.map(({ operationId }) => operationId)).toEqual(lists.map(({ operationId }) => operationId));
});

describe.each(lists)("$operationId", (list) => {
  it("leads through all items by its links, and reads limit + 1 rows for a page", async () => {
    await fill(list, 5);
    const pages: number[][] = [];
    const rowsRead: number[] = [];
    const DB = intercepted(env.DB, async (_, execute) => {
      const result = await execute();
      rowsRead.push((result as D1Result).meta.rows_read);
      return result;
    });
    for (let next: string | undefined = `/v1${list.path}?limit=2`; next !== undefined; ) {
      const answer: Answer = await call(next, { bindings: { DB } });
      pages.push(idsOf(answer));
      next = nextPage(answer)?.slice(ORIGIN.length);
    }
    expect(pages).toEqual([[1, 2], [3, 4], [5]]);
    expect(Math.max(...rowsRead)).toBeLessThanOrEqual(3);
  });

  it("returns 20 when limit is omitted, and starts after the given id", async () => {
    await fill(list, 21);
    expect(idsOf(await call(`/v1${list.path}`)).length).toBe(20);
    expect(idsOf(await call(`/v1${list.path}?after=20`))).toEqual([21]);
  });
});
