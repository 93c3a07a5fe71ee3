import { describe, expect, it, vi } from "vitest";
import { ROWS } from "../rows.ts";
import { recorded } from "./binding.ts";
import { call, expectBody, expectError, insertRow, insertRows } from "./call.ts";
import { testOperation } from "./operation.ts";

const REMOVAL = Date.UTC(2030, 11, 5);

testOperation("getPet", {
  id_not_found: () => call("/v1/pets/1"),
  operation_removed: () => {
    vi.setSystemTime(REMOVAL);
    return call("/v1/pets/1");
  },
});

describe("getPet", () => {
  it.each([
    ["1600000000000", "1600000000000"],
    ["1?limit=x", "1"],
    ["%31%32", "12"], // RFC 3986, section 6.2.2.2
  ])("finds the animal with the id in %s, marked as deprecated", async (petId, id) => {
    await insertRow(id, { categoryId: id });
    const pet = `{"id":${id},"name":"Rex","categoryId":${id},"status":"available"}`;
    const answer = await call(`/v1/pets/${petId}`);
    expectBody(answer, 200, pet);
    // The description requires the same headers of a 404 and a 410.
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      deprecation: "@1795132800",
      sunset: "Thu, 05 Dec 2030 00:00:00 GMT",
      link: '</v1/pets>; rel="successor-version", </#removal-of-getpet>; rel="deprecation"; type="text/html"',
    });
  });

  it.each([
    "0",
    "-1",
    "1599999999999.9",
    "1600000000000.0",
    "-9223372036854775808",
    "9223372036854775808",
    "01",
    "1%00",
    "%FF",
  ])("%s is 404", async (petId) => {
    for (const id of ["1", "1600000000000"]) await insertRow(id);
    expectError(await call(`/v1/pets/${petId}`), "id_not_found");
  });
});

it("getPet responds until the last millisecond before its removal, which needs a key, too", async () => {
  await insertRow("1");
  vi.setSystemTime(REMOVAL - 1);
  expect((await call("/v1/pets/1")).status).toBe(200);
  vi.setSystemTime(REMOVAL);
  for (const path of ["/v1/pets/1", "/v1/pets/x"]) expectError(await call(path), "operation_removed");
  expectError(await call("/v1/pets/1", { authorization: null }), "api_key_missing");
});

it("getPet is one round trip that reads one row, and has a bookmark, found or not", async () => {
  await insertRows(10);
  const { DB, trips } = recorded();
  for (const [id, status] of Object.entries({ 5: 200, 11: 404 })) {
    const answer = await call(`/v1/pets/${id}`, { bindings: { DB } });
    expect([answer.status, answer.headers.has("x-d1-bookmark")]).toEqual([status, true]);
  }
  expect(trips).toMatchObject([ROWS.getPet, ROWS.getPet]);
});
