// What holds of every operation that lists pages: by the links a caller meets all there is once, in order, and no page
// reads more rows than it shows and one. What is listed is added at the same path.

import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { type DescribedOperation, operations } from "../conformance.ts";
import { intercepted } from "./binding.ts";
import { type Answer, call, ORIGIN, requestTo } from "./service.ts";

const lists = operations.filter(({ parameters }) => parameters.some(({ name }) => name === "limit"));

/** Adds the example of what is listed, so many times. */
async function fill({ path }: DescribedOperation, count: number): Promise<void> {
  const creation = operations.find((operation) => operation.path === path && operation.method === "POST");
  if (!creation) return expect.fail(`nothing is added at ${path}`);
  for (let i = 0; i < count; i++) expect((await call(...requestTo(creation))).status).toBe(201);
}

const idsOf = ({ text }: Answer): number[] => JSON.parse(text).map(({ id }: { id: number }) => id);

it("every GET that answers an array is a list of pages", () => {
  const arrays = operations.filter(({ responses }) =>
    Array.isArray(responses[200]?.content?.["application/json"].example),
  );
  expect(arrays.map(({ operationId }) => operationId)).toEqual(lists.map(({ operationId }) => operationId));
});

describe.each(lists)("$operationId", (list) => {
  it("leads through all by its links, limit by limit, and reads limit + 1 rows", async () => {
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
      const [, url] = /^<(.+)>; rel="next"$/.exec(answer.headers.get("Link") ?? "") ?? [];
      next = url?.slice(ORIGIN.length);
    }
    expect(pages).toEqual([[1, 2], [3, 4], [5]]);
    expect(Math.max(...rowsRead)).toBeLessThanOrEqual(3);
  });

  it("shows 20 where no limit is given, and begins after what it is told", async () => {
    await fill(list, 21);
    expect(idsOf(await call(`/v1${list.path}`)).length).toBe(20);
    expect(idsOf(await call(`/v1${list.path}?after=20`))).toEqual([21]);
  });
});
