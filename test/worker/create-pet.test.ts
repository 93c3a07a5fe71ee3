import { describe, expect, it } from "vitest";
import { badRequest, call, countPets, createPet, expectBody, expectError, WHITE_SPACE } from "./service.ts";

const NAME = "must be a string with at least one character that is not white space";
const INT64 = "an integer between -9223372036854775808 and 9223372036854775807";
const NUMBER = `must be a JSON number without quotes: ${INT64}`;
const OBJECT = "The body must be a JSON object with name and categoryId.";
const STATUS = "must be one of available, pending, sold";

const rexWith = (categoryId: string) => `{"name":"Rex","categoryId":${categoryId}}`;
const storedRexWith = (categoryId: string) => `"name":"Rex","categoryId":${categoryId},"status":"available"`;

/** Asserts that createPet, getPet and listPets return the animal, to the last digit and code point. */
async function expectStored(body: string | Uint8Array, pet: string): Promise<void> {
  const answer = await createPet(body);
  const location = answer.headers.get("Location");
  expect(location).toMatch(/^\/v1\/pets\/[1-9]\d*$/);
  const id = location?.replace("/v1/pets/", "");
  const stored = `{"id":${id},${pet}}`;
  expectBody(answer, 201, stored);
  expectBody(await call(`${location}`), 200, stored);
  expectBody(await call(`/v1/pets?after=${Number(id) - 1}`), 200, `[${stored}]`);
}

describe("createPet", () => {
  it("answers 201 with the animal and its Location", async () => {
    const answer = await createPet('{"name":"Rex","categoryId":7,"status":"pending"}');
    expectBody(answer, 201, '{"id":1,"name":"Rex","categoryId":7,"status":"pending"}');
    expect(answer.headers.get("Location")).toBe("/v1/pets/1");
  });

  it.each(["available", "pending", "sold"])("stores the status %s", async (status) => {
    const pet = `"name":"Rex","categoryId":1,"status":"${status}"`;
    await expectStored(`{${pet}}`, pet);
  });

  it("defaults status to available", async () => {
    await expectStored(rexWith("1"), storedRexWith("1"));
  });

  it("assigns ids that start at 1 and increase", async () => {
    for (const id of [1, 2, 3]) {
      const { headers } = await createPet({ name: "Rex", categoryId: 1 });
      expect(headers.get("Location")).toBe(`/v1/pets/${id}`);
    }
  });

  it("assigns different ids to concurrent requests", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => createPet({ name: "Rex", categoryId: 1 })));
    expect(new Set(answers.map(({ headers }) => headers.get("Location"))).size).toBe(50);
    expect(await countPets()).toBe(50);
  });

  it("ignores unknown properties, even an id", async () => {
    await expectStored(
      '{"id":99,"name":"Rex","categoryId":1,"owner":{"name":null},"__proto__":{"status":"sold"},"constructor":1e999}',
      storedRexWith("1"),
    );
  });

  it("ignores the query", async () => {
    const headers = { "Content-Type": "application/json" };
    const answer = await call("/v1/pets?limit=x", { method: "POST", body: rexWith("1"), headers });
    expect(answer.status).toBe(201);
  });
});

describe("createPet, categoryId", () => {
  it.each([
    ["9223372036854775807", "9223372036854775807"],
    ["-9223372036854775808", "-9223372036854775808"],
    ["9007199254740993", "9007199254740993"],
    ["-9007199254740993", "-9007199254740993"],
    ["0", "0"],
    ["-0", "0"],
    ["-0.0", "0"],
    ["0e999999999", "0"],
    ["1.0", "1"],
    ["1e2", "100"],
    ["1E+2", "100"],
    ["-1.50e1", "-15"],
    ["100e-2", "1"],
    ["0.001e3", "1"],
    ["9223372036854775807.0", "9223372036854775807"],
    ["9.223372036854775807e18", "9223372036854775807"],
    ["-92233720368547758080e-1", "-9223372036854775808"],
  ])("accepts %s as the integer %s", async (written, categoryId) => {
    await expectStored(rexWith(written), storedRexWith(categoryId));
  });

  it.each([
    "9223372036854775808",
    "-9223372036854775809",
    "9223372036854775807.5",
    "10000000000000000000",
    "1.5",
    "1.0000000000000001",
    "1e-1",
    "1e30",
    "1e999999999",
    "1e-999999999",
    "1.0000000000000000001",
    "9007199254740992.5",
    "true",
    "null",
    "[]",
    "[1]",
    "{}",
  ])("rejects %s", async (written) => {
    expectError(await createPet(rexWith(written)), badRequest(`categoryId must be ${INT64}.`));
    expect(await countPets()).toBe(0);
  });

  it.each(['"7"', '"9223372036854775807"', '"x"', '""'])(
    "rejects the string %s, and asks for a number",
    async (written) => {
      expectError(await createPet(rexWith(written)), badRequest(`categoryId ${NUMBER}.`));
      expect(await countPets()).toBe(0);
    },
  );
});

describe("createPet, a categoryId of many digits", () => {
  it.each([
    ["zeros before an exponent", `1${"0".repeat(4_000)}e-4000`],
    ["zeros after a point", `0.${"0".repeat(4_000)}1e4001`],
  ])("accepts 1 with %s", async (_, written) => {
    await expectStored(rexWith(written), storedRexWith("1"));
  });

  it("rejects an exponent of 4,000 digits", async () => {
    expectError(await createPet(rexWith(`1e${"9".repeat(4_000)}`)), badRequest(`categoryId must be ${INT64}.`));
  });
});

describe("createPet, a repeated categoryId", () => {
  it.each(["1", '"1"'])("is exact after %s", async (first) => {
    await expectStored(rexWith(`${first},"categoryId":9007199254740993`), storedRexWith("9007199254740993"));
  });

  it.each(["1.5", "null", "[1]"])("is rejected if the last one is %s", async (last) => {
    expectError(await createPet(rexWith(`1,"categoryId":${last}`)), badRequest(`categoryId must be ${INT64}.`));
  });
});

describe("createPet, an ignored property", () => {
  it.each([
    ["2,000 numbers", `[${Array(2_000).fill(1)}]`],
    ["2,000 nested arrays", "[".repeat(2_000) + "]".repeat(2_000)],
    ["600 nested objects", `${'{"a":'.repeat(600)}1${"}".repeat(600)}`],
    ["strings full of quotes", JSON.stringify('"\\'.repeat(1_000))],
  ])("may contain %s", async (_, value) => {
    await expectStored(`{"x":${value},"name":"Rex","categoryId":9007199254740993}`, storedRexWith("9007199254740993"));
  });
});

describe("createPet, name", () => {
  it.each([
    ["an emoji of several code points", "👩🏽‍🚀"],
    ["U+0000", "a\u0000b"],
    ["U+0000 alone", "\u0000"],
    ["quotes and backslashes", `"'\\\`;--`],
    ["control characters", "\u0001\b\f\n\r\t\u001f\u007f\u0085"],
    ["surrounding white space", " \tRex\n "],
    ["unnormalized text", "e\u0301 \u00e9 \u212b \uff21"],
    ["U+200B, which is not white space", "\u200b"],
    ["non-characters", "\ufffe\uffff\u{10ffff}"],
    ["U+FFFD", "\ufffd"],
    ["4,000 characters", "x".repeat(4_000)],
    ["the text of a number", "9223372036854775808"],
    ["SQL", "'); DROP TABLE pets; --"],
  ])("keeps %s", async (_, name) => {
    const { text } = await createPet({ name, categoryId: 1 });
    expect(JSON.parse(text)).toEqual({ id: 1, name, categoryId: 1, status: "available" });
    expectBody(await call("/v1/pets/1"), 200, text);
    expectBody(await call("/v1/pets"), 200, `[${text}]`);
  });

  it("keeps every code point of the first plane, and both ends of every other plane", async () => {
    const inFirst = Array.from({ length: 0x80 }, (_, index) => index * 0x200);
    const inOthers = Array.from({ length: 0x10 }, (_, index) => [0x10000 * (index + 1), 0x10000 * (index + 2) - 0x200]);
    const starts = [...inFirst.filter((start) => start < 0xd800 || start > 0xdfff), ...inOthers.flat()];
    for (const start of starts) {
      const name = String.fromCodePoint(...Array.from({ length: 0x200 }, (_, offset) => start + offset));
      expect(JSON.parse((await createPet({ name, categoryId: 1 })).text).name).toBe(name);
    }
  });

  it.each(["", WHITE_SPACE, ...WHITE_SPACE])("rejects a name of only white space: %j", async (name) => {
    expectError(await createPet({ name, categoryId: 1 }), badRequest(`name ${NAME}.`));
    expect(await countPets()).toBe(0);
  });

  it.each(["1", "true", "null", "[]", '["Rex"]', "{}"])("rejects %s", async (written) => {
    expectError(await createPet(`{"name":${written},"categoryId":1}`), badRequest(`name ${NAME}.`));
    expect(await countPets()).toBe(0);
  });

  it.each(["\\ud800", "\\udc00", "a\\ud83dz", "\\udc36\\ud83d"])(
    "rejects the lone surrogate in %s",
    async (escaped) => {
      const answer = await createPet(`{"name":"${escaped}","categoryId":1}`);
      expectError(answer, badRequest("name must be well-formed Unicode, without lone surrogates."));
      expect(await countPets()).toBe(0);
    },
  );

  it("accepts a surrogate pair written as two escapes", async () => {
    await expectStored('{"name":"\\ud83d\\udc36","categoryId":1}', '"name":"🐶","categoryId":1,"status":"available"');
  });
});

describe("createPet, a body that is not a NewPet", () => {
  it.each([
    ["{}", `name is required and ${NAME}; categoryId is required and must be ${INT64}.`],
    ['{"name":"Rex"}', `categoryId is required and must be ${INT64}.`],
    ['{"categoryId":1}', `name is required and ${NAME}.`],
    ['{"Name":"Rex","categoryID":1}', `name is required and ${NAME}; categoryId is required and must be ${INT64}.`],
    ['{"name":1,"categoryId":"1","status":"gone"}', `name ${NAME}; categoryId ${NUMBER}; status ${STATUS}.`],
    ['{"name":" ","categoryId":1.5,"status":null}', `name ${NAME}; categoryId must be ${INT64}; status ${STATUS}.`],
    ['{"name":"Rex","categoryId":1,"status":null}', `status ${STATUS}.`],
    ['{"name":"Rex","categoryId":1,"status":"Sold"}', `status ${STATUS}.`],
    ['{"name":"Rex","categoryId":1,"status":""}', `status ${STATUS}.`],
    ['{"name":"Rex","categoryId":1,"status":["sold"]}', `status ${STATUS}.`],
    ['{"name":"Rex","categoryId":1,"status":0}', `status ${STATUS}.`],
    ["[]", OBJECT],
    [`${"[".repeat(2_000)}${"]".repeat(2_000)}`, OBJECT],
    ["null", OBJECT],
    ["1", OBJECT],
    ['"name"', OBJECT],
  ])("%s is 400, and the message names every problem", async (body, message) => {
    expectError(await createPet(body), badRequest(message));
    expect(await countPets()).toBe(0);
  });
});

describe("createPet, a body that is not JSON", () => {
  const NOT_JSON = "The body is not valid JSON (it must be one JSON object).";

  it.each([
    ["half an object", '{"name":"Rex","categoryId":'],
    ["a trailing comma", '{"name":"Rex","categoryId":1,}'],
    ["two objects", '{"name":"Rex","categoryId":1}{}'],
    ["single quotes", "{'name':'Rex','categoryId':1}"],
    ["NaN", '{"name":"Rex","categoryId":NaN}'],
    ["a leading zero", '{"name":"Rex","categoryId":01}'],
    ["a leading plus", '{"name":"Rex","categoryId":+1}'],
    ["a bare control character", '{"name":"a\u0000b","categoryId":1}'],
    ["4,000 brackets", "[".repeat(4_000)],
    ["a form", "name=Rex&categoryId=1"],
  ])("%s is 400", async (_, body) => {
    expectError(await createPet(body), badRequest(NOT_JSON));
    expect(await countPets()).toBe(0);
  });

  it.each([
    ["a stray byte", [0xff]],
    ["an overlong form", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a truncated sequence", [0xf0, 0x9f, 0x90]],
  ])("%s, which is not UTF-8, is 400", async (_, bytes) => {
    const encoder = new TextEncoder();
    const [before, after] = [encoder.encode('{"categoryId":1,"name":"a'), encoder.encode('"}')];
    expectError(
      await createPet(new Uint8Array([...before, ...bytes, ...after])),
      badRequest("The body is not valid UTF-8."),
    );
    expectError(await createPet(new Uint8Array([...before, ...bytes])), badRequest("The body is not valid UTF-8."));
    expect(await countPets()).toBe(0);
  });

  it("ignores a byte order mark (RFC 8259, section 8.1)", async () => {
    const body = new TextEncoder().encode('\ufeff{"name":"Rex","categoryId":1}');
    await expectStored(body, '"name":"Rex","categoryId":1,"status":"available"');
  });
});

describe("createPet, size", () => {
  const LIMIT = 4096;
  const TOO_LARGE = { code: "content_too_large", message: "The body must be at most 4096 bytes.", status: 413 };
  const bodyOf = (length: number) => {
    const [before, after] = ['{"categoryId":1,"name":"', '"}'];
    return before + "x".repeat(length - before.length - after.length) + after;
  };

  /** A body without Content-Length, in chunks of `size` bytes; counts how many were requested. */
  function chunked(text: string, size: number): { body: ReadableStream; taken: () => number } {
    const bytes = new TextEncoder().encode(text);
    let taken = 0;
    const body = new ReadableStream({
      type: "bytes",
      pull(controller) {
        const start = taken++ * size;
        if (start < bytes.length) return controller.enqueue(bytes.slice(start, start + size));
        controller.close();
        controller.byobRequest?.respond(0);
      },
    });
    return { body, taken: () => taken };
  }

  it("accepts 4 KiB", async () => {
    expect((await createPet(bodyOf(LIMIT))).status).toBe(201);
    expect((await createPet(chunked(bodyOf(LIMIT), 100).body)).status).toBe(201);
  });

  it("accepts 4 KiB with a Content-Length", async () => {
    const headers = { "Content-Length": String(LIMIT) };
    expect((await createPet(bodyOf(LIMIT), { headers })).status).toBe(201);
    expect((await createPet(chunked(bodyOf(LIMIT), 100).body, { headers })).status).toBe(201);
  });

  it("decodes characters that are split between chunks", async () => {
    const { body } = chunked('{"categoryId":1,"name":"🐶é🐶"}', 1);
    expect(JSON.parse((await createPet(body)).text).name).toBe("🐶é🐶");
  });

  it("rejects one byte more", async () => {
    expectError(await createPet(bodyOf(LIMIT + 1)), TOO_LARGE);
    expectError(await createPet(chunked(bodyOf(LIMIT + 1), 100).body), TOO_LARGE);
    expect(await countPets()).toBe(0);
  });

  it("counts bytes, not characters", async () => {
    expectError(await createPet({ name: "é".repeat(LIMIT / 2), categoryId: 1 }), TOO_LARGE);
  });

  it("rejects a Content-Length above the limit before reading the body", async () => {
    const { body, taken } = chunked(bodyOf(1000), 1000);
    expectError(await createPet(body, { headers: { "Content-Length": "4097" } }), TOO_LARGE);
    expect(taken()).toBeLessThanOrEqual(1);
  });

  it("stops reading at the limit", async () => {
    const { body, taken } = chunked("x".repeat(LIMIT * 100), 64);
    expectError(await createPet(body), TOO_LARGE);
    expect(taken()).toBeLessThan(80);
  });
});

describe("createPet, media type", () => {
  it.each([
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    "application/json ;charset=UTF-8",
    "application/vnd.api+json",
    "application/merge-patch+json; x=1",
    "text/x+json",
    "a^b/c^d+json",
  ])("accepts %s", async (type) => {
    const answer = await createPet({ name: "Rex", categoryId: 1 }, { headers: { "Content-Type": type } });
    expect(answer.status).toBe(201);
  });

  it.each([
    "",
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "application/jsonp",
    "xapplication/json",
    "application/json5",
    "application/+",
    "application/vnd/api+json",
    "application/a b+json",
    "json",
    "application/json, application/json",
    "text/plain; a=application/json",
    '"a"/b+json',
    "a@b/(c)+json",
  ])("rejects %j", async (type) => {
    const answer = await createPet({ name: "Rex", categoryId: 1 }, { headers: { "Content-Type": type } });
    expectError(answer, {
      code: "unsupported_media_type",
      message: "The body must be sent as Content-Type: application/json.",
      status: 415,
    });
    expect(answer.headers.has("Accept-Encoding")).toBe(false);
    expect(await countPets()).toBe(0);
  });

  it("is rejected together with a Content-Encoding", async () => {
    const headers = { "Content-Type": "text/plain", "Content-Encoding": "gzip" };
    const answer = await createPet({ name: "Rex", categoryId: 1 }, { headers });
    expectError(answer, {
      code: "unsupported_media_type",
      message: "The body must be sent as Content-Type: application/json and without a Content-Encoding.",
      status: 415,
    });
    expect(answer.headers.get("Accept-Encoding")).toBe("identity");
  });

  it("rejects a body without a media type", async () => {
    const body = new TextEncoder().encode('{"name":"Rex","categoryId":1}');
    expect((await call("/v1/pets", { method: "POST", body })).status).toBe(415);
    expect((await call("/v1/pets", { method: "POST" })).status).toBe(415);
  });
});

it.each([undefined, ""])("createPet without a body is 400: %j", async (body) => {
  const headers = { "Content-Type": "application/json" };
  const answer = await call("/v1/pets", { method: "POST", headers, ...(body !== undefined && { body }) });
  expectError(answer, badRequest("The body is empty (it must be one JSON object)."));
});

describe("createPet, content encoding", () => {
  it.each(["identity", "Identity"])("accepts %s", async (encoding) => {
    const answer = await createPet({ name: "Rex", categoryId: 1 }, { headers: { "Content-Encoding": encoding } });
    expect(answer.status).toBe(201);
  });

  it.each(["gzip", "br", "deflate, gzip", "identity, gzip", "x"])(
    "rejects %s, and says that no encoding is accepted",
    async (encoding) => {
      const answer = await createPet(new Uint8Array([0x1f, 0x8b, 8]), { headers: { "Content-Encoding": encoding } });
      expectError(answer, {
        code: "unsupported_media_type",
        message: "The body must be sent without a Content-Encoding.",
        status: 415,
      });
      expect(answer.headers.get("Accept-Encoding")).toBe("identity");
      expect(await countPets()).toBe(0);
    },
  );
});
