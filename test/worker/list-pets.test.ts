import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { nextPage } from "../conformance.ts";
import { type Answer, badRequest, call, expectBody, expectError, insertRow, ORIGIN } from "./service.ts";

const LIMIT = "limit must be an integer from 1 to 100";
const STATUS = "status must be one of available, pending, sold";
const LIMIT_FORM = "limit must be an integer from 1 to 100 in decimal digits, without a sign or leading zeros";
const AFTER = "after must be an integer between -9223372036854775808 and 9223372036854775807";
const AFTER_FORM = "after must be an integer in decimal digits, without a plus sign, leading zeros or -0";
const unknown = (names: string) => `unknown query parameter ${names} (allowed: limit, status, after)`;
const STATUSES = ["available", "pending", "sold"];

/** Stores `count` animals, whose statuses alternate. */
async function insertMany(count: number): Promise<void> {
  const row = env.DB.prepare("INSERT INTO pets (name, category_id, status) VALUES ('Rex', '1', ?)");
  await env.DB.batch(Array.from({ length: count }, (_, i) => row.bind(STATUSES[i % 3])));
}

const ids = ({ text }: Answer): number[] => JSON.parse(text).map(({ id }: { id: number }) => id);
const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

/** The path of the next page, from the Link header. */
function nextPath({ headers }: Answer): string | undefined {
  const url = nextPage({ headers });
  if (url !== undefined) expect(url).toMatch(/^https:\/\/store\.example\/v1\/pets\?[^<>]*$/);
  return url?.slice(ORIGIN.length);
}

describe("listPets", () => {
  it("returns an empty array for an empty store", async () => {
    const answer = await call("/v1/pets");
    expectBody(answer, 200, "[]");
    expect(answer.headers.has("Link")).toBe(false);
  });

  it("returns the animals in ascending order of id", async () => {
    for (const id of ["10", "2", "1000", "1", "100"]) await insertRow(id);
    expect(ids(await call("/v1/pets"))).toEqual([1, 2, 10, 100, 1000]);
    expect(ids(await call("/v1/pets?status=available"))).toEqual([1, 2, 10, 100, 1000]);
  });

  it("returns whole animals, exact at both ends of int64", async () => {
    await insertRow("-9223372036854775808", { categoryId: "9223372036854775807" });
    await insertRow("9223372036854775807", { name: 'a"b\\', categoryId: "-9223372036854775808", status: "sold" });
    const first = '{"id":-9223372036854775808,"name":"Rex","categoryId":9223372036854775807,"status":"available"}';
    const last = '{"id":9223372036854775807,"name":"a\\"b\\\\","categoryId":-9223372036854775808,"status":"sold"}';
    expectBody(await call("/v1/pets"), 200, `[${first},${last}]`);
    expectBody(await call("/v1/pets?status=available"), 200, `[${first}]`);
    expectBody(await call("/v1/pets?after=-9223372036854775808"), 200, `[${last}]`);
    expectBody(await call("/v1/pets?after=9223372036854775806"), 200, `[${last}]`);
    expectBody(await call("/v1/pets?after=9223372036854775807"), 200, "[]");
    expect(nextPath(await call("/v1/pets?limit=1"))).toBe("/v1/pets?limit=1&after=-9223372036854775808");
  });

  it.each(STATUSES)("returns only animals that are %s", async (status) => {
    await insertMany(9);
    const answer = await call(`/v1/pets?status=${status}`);
    const pets: { id: number; status: string }[] = JSON.parse(answer.text);
    expect(pets.map((pet) => pet.status)).toEqual([status, status, status]);
    expect(pets.map((pet) => (pet.id - 1) % 3)).toEqual(Array(3).fill(STATUSES.indexOf(status)));
  });

  it.each([
    ["1", 1],
    ["2", 2],
    ["%31%30", 10],
    ["100", 100],
  ])("accepts the limit %s", async (limit, count) => {
    await insertMany(101);
    expect(ids(await call(`/v1/pets?limit=${limit}`))).toEqual(range(1, count));
  });
});

describe("listPets, pages", () => {
  it("keeps limit and status in the link", async () => {
    await insertMany(9);
    const first = await call("/v1/pets?status=pending&limit=2");
    expect(ids(first)).toEqual([2, 5]);
    expect(nextPath(first)).toBe("/v1/pets?limit=2&status=pending&after=5");
    const second = await call("/v1/pets?status=pending&limit=2&after=5");
    expect(ids(second)).toEqual([8]);
    expect(nextPath(second)).toBeUndefined();
  });

  it("omits the link on the last page, even if that page is full", async () => {
    await insertMany(4);
    expect(nextPath(await call("/v1/pets?limit=4"))).toBeUndefined();
    expect(nextPath(await call("/v1/pets?limit=2&after=2"))).toBeUndefined();
    expect(nextPath(await call("/v1/pets?limit=3"))).toBe("/v1/pets?limit=3&after=3");
  });

  it.each([
    ["-9223372036854775808", [1, 2, 3]],
    ["-1", [1, 2, 3]],
    ["0", [1, 2, 3]],
    ["2", [3]],
    ["3", []],
    ["9223372036854775807", []],
  ])("starts after the id %s", async (after, expected) => {
    await insertMany(3);
    expect(ids(await call(`/v1/pets?after=${after}`))).toEqual(expected);
  });

  it("does not skip or repeat an animal if others are added between pages", async () => {
    await insertMany(4);
    const first = await call("/v1/pets?limit=2");
    await insertMany(2);
    const second = await call(`${nextPath(first)}`);
    const third = await call(`${nextPath(second)}`);
    expect([...ids(first), ...ids(second), ...ids(third)]).toEqual(range(1, 6));
  });
});

describe("listPets, an invalid query", () => {
  it.each([
    ["limit=0", LIMIT],
    ["limit=101", LIMIT],
    ["limit=99999999999999999999", LIMIT],
    ["limit=-1", LIMIT],
    [`limit=${"9".repeat(1000)}`, LIMIT],
    ["limit=05", LIMIT_FORM],
    ["limit=-0", LIMIT_FORM],
    ["limit=%2B1", LIMIT_FORM],
    ["limit=+1", LIMIT_FORM],
    ["limit=1.0", LIMIT_FORM],
    ["limit=1e1", LIMIT_FORM],
    ["limit=0x10", LIMIT_FORM],
    ["limit=1_0", LIMIT_FORM],
    ["limit=%D9%A1", LIMIT_FORM],
    ["limit=1%0A", LIMIT_FORM],
    ["limit=", LIMIT_FORM],
    ["limit", LIMIT_FORM],
    ["limit=null", LIMIT_FORM],
    ["status=", STATUS],
    ["status", STATUS],
    ["status=Available", STATUS],
    ["status=available%20", STATUS],
    ["status=gone", STATUS],
    ["status=available,sold", STATUS],
    ["status=constructor", STATUS],
    ["after=", AFTER_FORM],
    ["after=x", AFTER_FORM],
    ["after=00", AFTER_FORM],
    ["after=--1", AFTER_FORM],
    ["after=1.0", AFTER_FORM],
    ["after=1e1", AFTER_FORM],
    ["after=+1", AFTER_FORM],
    ["after=01", AFTER_FORM],
    ["after=-0", AFTER_FORM],
    ["after=9223372036854775808", AFTER],
    ["after=-9223372036854775809", AFTER],
    [`after=${"9".repeat(1000)}`, AFTER],
    ["limit=1&limit=1", "limit must be given only once"],
    ["limit=&limit=1", "limit must be given only once"],
    ["status=sold&status=sold", "status must be given only once"],
    ["after=1&limit=1&after=2", "after must be given only once"],
    ["limit=0&status=x&after=y", `${LIMIT}; ${STATUS}; ${AFTER_FORM}`],
  ])("%s is 400", async (query, message) => {
    expectError(await call(`/v1/pets?${query}`), badRequest(`${message}.`));
  });

  it.each([
    ["offset=1", "offset"],
    ["Limit=1", "Limit"],
    ["stauts=sold", "stauts"],
    ["=1", '""'],
    ["=", '""'],
    ["?limit=1", "?limit"],
    ["a+b=1&a%20b=2", "a%20b"],
    ["limit%20=1", "limit%20"],
    ["offset", "offset"],
    ["&&offset=1", "offset"],
    ["__proto__=1", "__proto__"],
    ["constructor=1&toString=1", "constructor, toString"],
    ["a&a", "a"],
    ["a%0Ab=1", "a%0Ab"],
    ["%E2%80%A8=1", "%E2%80%A8"],
    ["access_token=first-key", "access_token"],
  ])("an unknown parameter, %s, is 400", async (query, names) => {
    const { status, text } = await call(`/v1/pets?${query}`);
    expect(status).toBe(400);
    expect(JSON.parse(text).message).toContain(` ${names} (`);
  });

  it.each(["?", "?&", "?&&limit=1&", "?%6Cimit=1"])("%j does not contain an unknown parameter", async (query) => {
    expectBody(await call(`/v1/pets${query}`), 200, "[]");
  });

  it.each([
    ["five", "a&b&c&d&e", "a, b, c, d, e"],
    ["many", Array.from({ length: 7_500 }, (_, index) => `p${index}=1`).join("&"), "p0, p1, p2, p3, p4 and others"],
    ["a long one", "x".repeat(10_000), `${"x".repeat(100)}...`],
  ])(
    "names the first unknown parameters and the allowed ones, together with other problems: %s",
    async (_, query, names) => {
      expectError(await call(`/v1/pets?limit=0&${query}`), badRequest(`${LIMIT}; ${unknown(names)}.`));
    },
  );

  it("reads an unknown parameter after many known ones", async () => {
    const repeated = "status=sold&".repeat(99);
    const message = `status must be given only once; ${unknown("offset")}`;
    expectError(await call(`/v1/pets?${repeated}offset=1`), badRequest(`${message}.`));
  });
});
