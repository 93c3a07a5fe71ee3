import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { described } from "../conformance.ts";
import { ROWS, rowsOfPage } from "../rows.ts";
import { recorded } from "./binding.ts";
import { ADA, type Answer, call, createPet, expectBody, expectError, insertRow, insertRows, REX } from "./call.ts";
import { testOperation } from "./operation.ts";

testOperation("listPets", { invalid_request: () => call("/v1/pets?limit=0&offset=20") });

const PARAMETERS = described("listPets")
  .parameters.filter((parameter) => parameter.in === "query")
  .map(({ name }) => name);
const FILTERS = PARAMETERS.filter((name) => !["limit", "after"].includes(name));

const LIMIT = "must be an integer from 1 to 100";
const LIMIT_FORM = `${LIMIT} in decimal digits, without a sign or leading zeros`;
const STATUS = "must be one of available, pending, sold";
const INT64 = "must be an integer between -9223372036854775808 and 9223372036854775807";
const INT64_FORM = "must be an integer in decimal digits, without a plus sign, leading zeros or -0";

type Values = { accepted: [string, ...string[]]; rejected: { "": string; [value: string]: string } };
const ANY_INT64: Values = {
  accepted: ["-9223372036854775808", "0", "9223372036854775807"],
  rejected: { "": INT64_FORM, "-0": INT64_FORM, "1.0": INT64_FORM, "9223372036854775808": INT64 },
};

/** For each query parameter, values that are accepted, and the problems with others. */
const VALUES: Record<string, Values> = {
  limit: { accepted: ["1", "100"], rejected: { "": LIMIT_FORM, 0: LIMIT, 101: LIMIT, "05": LIMIT_FORM } },
  status: { accepted: ["available", "pending", "sold"], rejected: { "": STATUS, Available: STATUS } },
  id: ANY_INT64,
  after: ANY_INT64,
};

const unknown = (names: string) => `unknown query parameter ${names} (allowed: ${PARAMETERS.join(", ")})`;

const ids = ({ text }: Answer): number[] => JSON.parse(text).map(({ id }: { id: number }) => id);
const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

/** The path of the next page, from the Link header. */
function nextPath({ headers }: Answer): string | undefined {
  return /^<https:\/\/store\.example(\/v1\/pets\?.+)>; rel="next"$/.exec(headers.get("Link") ?? "")?.[1];
}

describe("listPets", () => {
  it("returns the animals in ascending order of id", async () => {
    for (const id of ["10", "2", "1000", "1", "100"]) await insertRow(id);
    expect(ids(await call("/v1/pets"))).toEqual([1, 2, 10, 100, 1000]);
    expect(ids(await call("/v1/pets?status=available"))).toEqual([1, 2, 10, 100, 1000]);
  });

  it("returns whole animals, exact at both ends of int64", async () => {
    const greatest = "1600000000000";
    await insertRow("1", { categoryId: "9223372036854775807" });
    await insertRow(greatest, { name: 'a"b\\', categoryId: "-9223372036854775808", status: "sold" });
    const first = '{"id":1,"name":"Rex","categoryId":9223372036854775807,"status":"available"}';
    const last = `{"id":${greatest},"name":"a\\"b\\\\","categoryId":-9223372036854775808,"status":"sold"}`;
    expectBody(await call("/v1/pets"), 200, `[${first},${last}]`);
    expectBody(await call("/v1/pets?status=available"), 200, `[${first}]`);
    expectBody(await call("/v1/pets?after=-9223372036854775808"), 200, `[${first},${last}]`);
    expectBody(await call("/v1/pets?after=1599999999999"), 200, `[${last}]`);
    for (const after of [greatest, "9223372036854775807"]) {
      expectBody(await call(`/v1/pets?after=${after}`), 200, "[]");
    }
    expect(nextPath(await call("/v1/pets?limit=1"))).toBe("/v1/pets?limit=1&after=1");
  });

  it.each([
    ["", 20],
    ["?limit=1", 1],
    ["?limit=100", 100],
  ])("returns as many animals as the limit: %s", async (query, count) => {
    await insertRows(101);
    expect(ids(await call(`/v1/pets${query}`))).toEqual(range(1, count));
  });
});

it.each([
  ["id=5", [5]],
  ["id=5&limit=1", [5]],
  ["id=5&status=pending", [5]],
  ["id=5&status=sold", []],
  ["id=5&after=4", [5]],
  ["id=5&after=5", []],
  ["id=5&after=9223372036854775807", []],
  ["id=11", []],
  ["id=-9223372036854775808", []],
  ["id=9223372036854775807", []],
])("listPets with %s is %j, in one round trip, and without a link", async (query, expected) => {
  await insertRows(10);
  const { DB, trips } = recorded();
  const answer = await call(`/v1/pets?${query}`, { bindings: { DB } });
  expect(ids(answer)).toEqual(expected);
  expect(nextPath(answer)).toBeUndefined();
  expect(trips).toMatchObject([ROWS["listPets with an id"]]);
});

it("listPets returns only animals that match all of its parameters", async () => {
  const [rex, ada] = [await createPet(REX), await createPet(ADA)].map(({ text }) => JSON.parse(text));
  for (const one of FILTERS)
    for (const other of FILTERS.filter((name) => name !== one)) {
      const path = `/v1/pets?${one}=${rex[one]}&${other}=${ada[other]}`;
      expect((await call(path)).text, path).toBe("[]");
    }
});

describe("listPets, pages", () => {
  it("keeps limit and status in the link", async () => {
    await insertRows(9);
    const first = await call("/v1/pets?status=pending&limit=2");
    expect(ids(first)).toEqual([2, 5]);
    expect(nextPath(first)).toBe("/v1/pets?limit=2&status=pending&after=5");
    expect(ids(await call("/v1/pets?status=pending&limit=2&after=5"))).toEqual([8]);
  });

  it("has the scheme in the link that the caller of a tunnel used", async () => {
    await insertRows(2);
    const headers = { "cf-visitor": '{"scheme":"https"}' };
    expect(nextPath(await call("/v1/pets?limit=1", { origin: "http://store.example", headers }))).toBeDefined();
  });

  it("omits the link on the last page, even if that page is full", async () => {
    await insertRows(4);
    expect(nextPath(await call("/v1/pets?limit=4"))).toBeUndefined();
    expect(nextPath(await call("/v1/pets?limit=3"))).toBe("/v1/pets?limit=3&after=3");
  });
});

it.each(PARAMETERS)("listPets accepts and rejects values of %s, which must be given only once", async (name) => {
  const { accepted, rejected } = VALUES[name] ?? expect.fail(`VALUES must have ${name}`);
  for (const value of accepted) expect((await call(`/v1/pets?${name}=${value}`)).status, value).toBe(200);
  const [again, once] = [`&${name}=${accepted[0]}`, "must be given only once"];
  for (const [value, problem] of Object.entries({ ...rejected, [accepted[0] + again]: once, [again]: once }))
    expectError(await call(`/v1/pets?${name}=${value}`), "invalid_request", `${name} ${problem}.`);
});

describe("listPets rejects", () => {
  it.each([
    ["limit=0&status=x&after=y", `limit ${LIMIT}; status ${STATUS}; after ${INT64_FORM}`],
    ["Limit=1", unknown("Limit")],
    ["=1", unknown('""')],
    ["?limit=1", unknown("?limit")],
    ["__proto__=1", unknown("__proto__")],
    ["%F0%9F%90%B6=1", unknown("%F0%9F%90%B6")],
    ["limit=0&a&b&c&d&e", `limit ${LIMIT}; ${unknown("a, b, c, d, e")}`],
    ["x".repeat(150), unknown(`${"x".repeat(100)}...`)],
  ])("%s", async (query, message) => {
    expectError(await call(`/v1/pets?${query}`), "invalid_request", `${message}.`);
  });

  it("7,500 unknown parameters", async () => {
    const query = Array.from({ length: 7_500 }, (_, index) => `p${index}=1`).join("&");
    expectError(await call(`/v1/pets?${query}`), "invalid_request", `${unknown("p0, p1, p2, p3, p4 and others")}.`);
  });
});

it.each(["", "?", "?&&limit=1&", "?%6Cimit=1"])("listPets of an empty store accepts the query %j", async (query) => {
  expectBody(await call(`/v1/pets${query}`), 200, "[]");
});

describe("listPets reads", () => {
  // Without an index, a statement would read more.
  it.each([
    ["", 20],
    ["?limit=100&after=500", 100],
    ["?status=pending&limit=100&after=500", 100],
  ])("at most limit + 1 rows, in one round trip: %s", async (query, limit) => {
    await insertRows(1000);
    const { DB, trips } = recorded();
    expect((await call(`/v1/pets${query}`, { bindings: { DB } })).status).toBe(200);
    expect(trips).toMatchObject([rowsOfPage(limit)]);
  });

  it.each(["", "?status=pending"])("an index, with both ends of the range: %s", async (query) => {
    const { DB, trips } = recorded();
    await call(`/v1/pets${query}`, { bindings: { DB } });
    // The values do not matter.
    const sql = `EXPLAIN QUERY PLAN ${trips[0]?.sql.replaceAll(/\?\d/g, "1")}`;
    const { results } = await env.DB.prepare(sql).all();
    expect(results).toMatchObject([{ detail: expect.stringMatching(/^SEARCH .*rowid>\? AND rowid<\?/) }]);
  });

  // In a store of animals that were alike, SQLite's statistics speak against the index.
  it.each(FILTERS)("at most limit + 1 rows to find the only animal with a different %s", async (name) => {
    for (let i = 0; i < 20; i++) await createPet(REX);
    await env.DB.exec("ANALYZE");
    const { text } = await createPet(ADA);
    const { DB, trips } = recorded();
    const path = `/v1/pets?limit=1&${name}=${JSON.parse(text)[name]}`;
    expectBody(await call(path, { bindings: { DB } }), 200, `[${text}]`);
    expect(trips.map(({ rows_read }) => rows_read <= rowsOfPage(1).rows_read)).toEqual([true]);
  });
});
