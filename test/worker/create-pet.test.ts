import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../../src/http/errors.ts";
import { ROWS } from "../rows.ts";
import { failing, recorded } from "./binding.ts";
import {
  ADA,
  type Answer,
  call,
  countPets,
  createPet,
  expectBody,
  expectError,
  insertRow,
  insertRows,
  noteCorrections,
  REX,
  WHITE_SPACE,
} from "./call.ts";
import { testOperation } from "./operation.ts";

testOperation("createPet", {
  invalid_request: () => createPet('{"categoryId":1}'),
  body_too_large: () => createPet(bodyOf(LIMIT + 1)),
  unsupported_media_type: () =>
    createPet(REX, { headers: { "Content-Type": "text/plain", "Content-Encoding": "gzip" } }),
  idempotency_key_used: async () => {
    const headers = { "Idempotency-Key": "taken" };
    await createPet(REX, { headers });
    return createPet(ADA, { headers });
  },
  outcome_unknown: () => createPet(REX, { bindings: { DB: failing(new Error("D1_ERROR: internal error")) } }),
});

const NAME = "must be a string of at most 1000 characters, at least one of which is not white space";
const INT64 = "an integer between -9223372036854775808 and 9223372036854775807";
const CATEGORY_ID = `categoryId must be ${INT64}.`;
const UNQUOTED = `categoryId must be a JSON number without quotes: ${INT64}`;
const STATUS = "status must be one of available, pending, sold.";

const NOT_AN_OBJECT = "The body must be a JSON object with name and categoryId.";

const LIMIT = 16384;
const NOT_TYPED = "The body must be sent as Content-Type: application/json.";
const ENCODED = "The body must be sent without a Content-Encoding.";

const rexWith = (categoryId: string) => `{"name":"Rex","categoryId":${categoryId}}`;
const storedRexWith = (categoryId: string) => `"name":"Rex","categoryId":${categoryId},"status":"available"`;

const idOf = ({ text }: Answer): number => JSON.parse(text).id;

/** Asserts that createPet stores the animal, and returns it as it is stored, to the last digit and code point. */
async function expectStored(body: string | Uint8Array, pet: string): Promise<void> {
  const answer = await createPet(body);
  const id = idOf(answer);
  expectBody(answer, 201, `{"id":${id},${pet}}`);
  const location = `/v1/pets/${id}`;
  expect(answer.headers.get("Location")).toBe(location);
  expect((await call(location)).text).toBe(answer.text);
}

/** Asserts the whole Error body, and that nothing is stored. */
async function expectRejected(answer: Answer, code: ErrorCode, message?: string): Promise<void> {
  expectError(answer, code, message);
  expect(await countPets()).toBe(0);
}

const utf8 = (text: string) => new TextEncoder().encode(text);

/** JSON escapes for every character: two for those beyond U+FFFF. */
const escapes = (text: string) =>
  text.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A body of `length` bytes. */
const bodyOf = (length: number) => rexWith(`1,"x":"${"x".repeat(length - rexWith('1,"x":""').length)}"`);

/** A body in chunks of 100 bytes; counts how many were requested. */
function chunked(text: string): { body: ReadableStream; taken: () => number } {
  const bytes = utf8(text);
  let taken = 0;
  const body = new ReadableStream({
    type: "bytes",
    pull(controller) {
      const start = taken++ * 100;
      if (start < bytes.length) return controller.enqueue(bytes.slice(start, start + 100));
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
  return { body, taken: () => taken };
}

describe("createPet gives", () => {
  const create = async () => idOf(await createPet(REX));
  /** The Unix time in milliseconds as SQLite knows it: that of JavaScript is the tests'. */
  const now = async () => Number(await env.DB.prepare("SELECT unixepoch('subsec') * 1000 AS now").first("now"));

  it("the time as an id, later ones to later animals, and none twice after animals are removed", async () => {
    const [before, first, second, after] = [await now(), await create(), await create(), await now()];
    expect(first).toBeGreaterThanOrEqual(Math.floor(before));
    expect(second).toBeGreaterThan(first);
    expect(second).toBeLessThanOrEqual(after + 1);
    await noteCorrections();
    await env.DB.exec("DELETE FROM pets");
    while ((await now()) <= second + 1); // within the same millisecond, the id could be the same
    expect(await create()).toBeGreaterThan(second);
  });

  // As if the clock had gone back since, or stood still.
  it("the next id while the store has one that is ahead of the clock", async () => {
    const ahead = Math.floor(await now()) + 3_500_000;
    await insertRow(String(ahead));
    expect([await create(), await create()]).toEqual([ahead + 1, ahead + 2]);
  });
});

describe("createPet stores", () => {
  it.each([
    ["9223372036854775807", "9223372036854775807"],
    ["-9223372036854775808", "-9223372036854775808"],
    ["-0", "0"],
    ["0e999999999", "0"],
    ["1.0", "1"],
    ["1E+2", "100"],
    ["1234567890123e6", "1234567890123000000"],
    ["-1.50e1", "-15"],
    ["9.223372036854775807e18", "9223372036854775807"],
    ["-92233720368547758080e-1", "-9223372036854775808"],
    ['"1","categoryId":9007199254740993', "9007199254740993"],
  ])("the categoryId %s as %s", (written, categoryId) => expectStored(rexWith(written), storedRexWith(categoryId)));

  it.each([
    ["U+0000", "a\u0000b"],
    ["surrounding white space", " \tRex\n "],
    ["unnormalized text", "e\u0301 \u00e9 \u212b \uff21"],
    ["1,000 characters of four bytes", "😀".repeat(1000)],
    ["1,000 characters that JSON escapes", `\u0000"${"\u0001".repeat(998)}`],
  ])("a name with %s, unchanged, in UTF-8 and as escapes", async (_, name) => {
    const json = JSON.stringify(name);
    await expectStored(`{"name":${json},"categoryId":1}`, `"name":${json},"categoryId":1,"status":"available"`);
    expect(JSON.parse((await createPet(`{"name":"${escapes(name)}","categoryId":1}`)).text).name).toBe(name);
  });

  const EXACT = "9007199254740993";
  const rexAfter = (value: string) => `{"x":${value},"name":"Rex","categoryId":${EXACT}}`;

  it.each([
    ["without unknown properties", rexAfter('{"name":1},"id":99,"__proto__":{"status":"sold"},"constructor":1e999')],
    ["after 8,000 nested arrays", rexAfter("[".repeat(8_000) + "]".repeat(8_000))],
    ["after members with its own names", rexAfter('[{"name":"\\"]}","categoryId":1.5}],"categoryId":2')],
    ["with a categoryId of many zeros after its point", rexWith(`0.${"0".repeat(16_000)}${EXACT}e16016`)],
    ["after a byte order mark (RFC 8259, section 8.1)", utf8(`\ufeff${rexWith(EXACT)}`)],
  ])("an animal %s", (_, body) => expectStored(body, storedRexWith(EXACT)));

  it.each([{}, { "Content-Length": String(LIMIT) }])("16 KiB, whole and in chunks, with %j", async (headers) => {
    expect((await createPet(bodyOf(LIMIT), { headers })).status).toBe(201);
    expect((await createPet(chunked(bodyOf(LIMIT)).body, { headers })).status).toBe(201);
  });

  it.each([
    { "Content-Type": "APPLICATION/JSON ;charset=UTF-8" },
    { "Content-Type": "a^b/c^d+json; x=1" },
    { "Content-Encoding": "Identity" },
  ])("a body with the headers %j", async (headers) => {
    expect((await createPet(rexWith("1"), { headers })).status).toBe(201);
  });
});

describe("createPet rejects", () => {
  it.each([
    ['{"Name":"Rex","categoryID":1}', `name is required and ${NAME}; categoryId is required and must be ${INT64}.`],
    ['{"name":1,"categoryId":"1","status":"gone"}', `name ${NAME}; ${UNQUOTED}; ${STATUS}`],
    [JSON.stringify({ name: WHITE_SPACE, categoryId: 1 }), `name ${NAME}.`],
    [`{"name":"${"😀".repeat(1001)}","categoryId":1}`, `name ${NAME}.`],
    [`{"name":"${"\\u0000".repeat(1000)}${escapes("x")}","categoryId":1}`, `name ${NAME}.`],
    ['{"name":"\\ud800","categoryId":1}', "name must be well-formed Unicode, without lone surrogates."],
    [rexWith("9223372036854775808"), CATEGORY_ID],
    [rexWith("-9223372036854775809"), CATEGORY_ID],
    [rexWith("9223372036854775807.5"), CATEGORY_ID],
    [rexWith("9007199254740.9999"), CATEGORY_ID],
    [rexWith("1.5"), CATEGORY_ID],
    [rexWith("1e999999999"), CATEGORY_ID],
    [rexWith("null"), CATEGORY_ID],
    [rexWith('"9223372036854775807"'), `${UNQUOTED}.`],
    [rexWith('1,"status":null'), STATUS],
    ["[1]", NOT_AN_OBJECT],
    ["null", NOT_AN_OBJECT],
    [undefined, "The body is empty (it must be one JSON object)."],
    ['{"name":"Rex","categoryId":', "The body is not valid JSON (it must be one JSON object)."],
    [new Uint8Array([0xff]), "The body is not valid UTF-8."],
  ])("%s", async (body, message) => expectRejected(await createPet(body), "invalid_request", message));

  it.each([
    ["one byte more than 16 KiB, in chunks", chunked(bodyOf(LIMIT + 1)).body, {}],
    ["16,384 characters that are more bytes", bodyOf(LIMIT).replaceAll("x", "é"), {}],
    ["a Content-Length of more than 16 KiB", rexWith("1"), { "Content-Length": String(LIMIT + 1) }],
  ])("%s", async (_, body, headers) => expectRejected(await createPet(body, { headers }), "body_too_large"));

  it.each([
    [{ "Content-Type": "" }, NOT_TYPED],
    [{ "Content-Type": "application/jsonp" }, NOT_TYPED],
    [{ "Content-Type": "xapplication/json" }, NOT_TYPED],
    [{ "Content-Type": "a@b/(c)+json" }, NOT_TYPED],
    [{ "Content-Encoding": "gzip" }, ENCODED],
    [{ "Content-Encoding": "identity, gzip" }, ENCODED],
  ])("a body with the headers %j", async (headers, message) => {
    const answer = await createPet(rexWith("1"), { headers });
    await expectRejected(answer, "unsupported_media_type", message);
    expect(answer.headers.get("Accept-Encoding")).toBe("Content-Encoding" in headers ? "identity" : null);
  });

  it("an endless body at the limit", async () => {
    const { body, taken } = chunked("x".repeat(LIMIT * 100));
    await expectRejected(await createPet(body), "body_too_large");
    expect(taken()).toBeLessThan(200);
  });
});

// Written: the animal, and its entry in each index.
it.each([
  [{}, [ROWS.createPet, ROWS.createPet]],
  [{ "Idempotency-Key": "key" }, [ROWS["createPet with an Idempotency-Key"], ROWS["createPet, repeated"]]],
])("createPet is one round trip, also when it is repeated, with the headers %j", async (headers, rows) => {
  await insertRows(10);
  const { DB, trips } = recorded();
  for (let i = 0; i < 2; i++) await createPet(REX, { headers, bindings: { DB } });
  expect(trips).toMatchObject(rows);
});
