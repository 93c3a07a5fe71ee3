// What restore accepts as a file, line by line, and what the commands print.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { explain, parseArguments } from "../../scripts/backup/command.ts";
import { printable } from "../../scripts/command.ts";
import { readInput } from "../../scripts/backup/input.ts";
import { Failure } from "../../scripts/backup/store.ts";
import { failure } from "./database.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
const file = join(folder, "pets.jsonl");
afterAll(() => rmSync(folder, { recursive: true }));

/** The lines of a file with this content, as JSON; or the message of the Failure, without its first line. */
async function read(content: string | Buffer): Promise<{ lines: string[] } | { faults: string[] }> {
  writeFileSync(file, content);
  const lines: string[] = [];
  try {
    for await (const { text } of readInput(file)) lines.push(text);
    return { lines };
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Failure);
    const [first, ...faults] = (thrown as Failure).message.split("\n");
    expect(first).toBe(`${file} has invalid lines. Correct them first:`);
    return { faults };
  }
}

const GOOD = '{"id":1,"name":"Rex","categoryId":1,"status":"sold","idempotencyKey":"k"}';
const PROPERTIES = "id, name, categoryId, status, idempotencyKey";

describe("a line", () => {
  it.each<[string, string | Buffer, string | RegExp]>([
    ["that is not JSON", "{", "is not valid JSON"],
    ["that is empty", "", "is empty"],
    ["that is a list", "[]", "is not a JSON object"],
    ["that is null", "null", "is not a JSON object"],
    ["nested 30,000 deep", `${"[".repeat(30_000)}${"]".repeat(30_000)}`, "is not a JSON object"],
    [
      "with a name nested 30,000 deep",
      `{"id":2,"name":${"[".repeat(30_000)}${"]".repeat(30_000)},"categoryId":1}`,
      /^name must be a string/,
    ],
    ["without a name", '{"id":2,"categoryId":1}', /^name is required and must be a string with at least one character/],
    [
      "with several faults",
      '{"id":2,"name":" ","categoryId":1.5,"status":"gone"}',
      /name must be .*; categoryId must be .*; status must be /,
    ],
    [
      "with an id beyond int64",
      '{"id":9223372036854775808,"name":"a","categoryId":1}',
      /^id must be an integer between/,
    ],
    [
      "with the greatest int64 as its id",
      '{"id":9223372036854775807,"name":"a","categoryId":1}',
      "id must be from 1 to 4611686018427387904",
    ],
    [
      "with an id just above the limit",
      '{"id":4611686018427387905,"name":"a","categoryId":1}',
      "id must be from 1 to 4611686018427387904",
    ],
    ["with the id 0", '{"id":0,"name":"a","categoryId":1}', "id must be from 1 to 4611686018427387904"],
    ["with a negative id", '{"id":-1,"name":"a","categoryId":1}', "id must be from 1 to 4611686018427387904"],
    [
      "with null instead of a key",
      '{"id":2,"name":"a","categoryId":1,"idempotencyKey":null}',
      /^idempotencyKey must be a string/,
    ],
    [
      "with a control character in its key",
      '{"id":2,"name":"a","categoryId":1,"idempotencyKey":"\\t"}',
      /^idempotencyKey must be/,
    ],
    [
      "with an unknown property",
      '{"id":2,"name":"a","categoryId":1,"Status":"sold"}',
      `unknown property Status: use ${PROPERTIES}`,
    ],
    [
      "with properties of every object",
      '{"id":2,"name":"a","categoryId":1,"__proto__":{"id":3},"toString":1,"constructor":1,"valueOf":1}',
      `unknown property __proto__, toString, constructor, valueOf: use ${PROPERTIES}`,
    ],
    [
      "with control characters in a property",
      '{"id":2,"name":"a","categoryId":1,"\\u001b[2J\\nline 3":1}',
      `unknown property "\\u001b[2J\\nline 3": use ${PROPERTIES}`,
    ],
    [
      "with a very long property",
      `{"id":2,"name":"a","categoryId":1,"${"x".repeat(9_000)}":1}`,
      `unknown property ${"x".repeat(100)}...: use ${PROPERTIES}`,
    ],
    ["of an unknown table", '{"table":"toys","id":2}', "table must be one of pets"],
    ["of the table __proto__", '{"table":"__proto__","id":2}', "table must be one of pets"],
    ["with control characters in its table", '{"table":"\\u001b[2J","id":2}', "table must be one of pets"],
    ["with an object as its table", '{"table":{"toString":1},"id":2}', "table must be one of pets"],
    [
      "with the id of an earlier line",
      '{"id":1,"name":"a","categoryId":1}',
      "id must be greater than 1, an earlier id",
    ],
    [
      "with the key of an earlier line",
      '{"id":2,"name":"a","categoryId":1,"idempotencyKey":"k"}',
      "has the idempotencyKey of line 1",
    ],
    ["without an id after one with an id", '{"name":"a","categoryId":1}', "lacks an id, but earlier lines have one"],
    ["with a lone surrogate", '{"id":2,"name":"\\ud800","categoryId":1}', /^name must be well-formed Unicode/],
    [
      "with a name too long for a request",
      `{"id":2,"name":"${"a".repeat(67_000)}","categoryId":1}`,
      "is longer than any animal that the service accepts",
    ],
    ["that is not UTF-8", Buffer.from('{"id":2,"name":"\xff","categoryId":1}', "latin1"), "is not valid UTF-8"],
    ["in UTF-16", Buffer.from('{"id":2,"name":"a","categoryId":1}', "utf16le"), "is not valid JSON"],
  ])("%s is rejected by its number", async (_, line, fault) => {
    const content = Buffer.concat([
      Buffer.from(`${GOOD}\n`),
      Buffer.from(line),
      Buffer.from(`\n${GOOD.replace("1", "9").replace('"k"', '"l"')}\n`),
    ]);
    const result = await read(content);
    expect(result).toEqual({ faults: [expect.stringMatching(/^line 2: /)] });
    const [found = ""] = "faults" in result ? result.faults : [];
    expect(found.replace("line 2: ", "")).toEqual(typeof fault === "string" ? fault : expect.stringMatching(fault));
  });

  it("with an id is rejected after lines without", async () => {
    expect(await read('{"name":"a","categoryId":1}\n{"id":2,"name":"a","categoryId":1}\n')).toEqual({
      faults: ["line 2: has an id, but earlier lines do not"],
    });
  });
});

describe("a file", () => {
  it("may be written by hand or on Windows: with a byte order mark, CRLF, blanks, and no newline at its end", async () => {
    expect(
      await read(
        '\ufeff{ "name": "Rex", "categoryId": 1e2 }\r\n{"table":"pets","status":"sold","categoryId":2,"name":"Tom"}',
      ),
    ).toEqual({
      lines: [
        '{"id":1,"name":"Rex","categoryId":100,"status":"available"}',
        '{"id":2,"name":"Tom","categoryId":2,"status":"sold"}',
      ],
    });
  });

  it("has one value for a name that is there twice: the last, as in a request", async () => {
    expect(await read('{"id":7,"name":"a","name":"b","categoryId":1,"id":8}')).toEqual({
      lines: ['{"id":8,"name":"b","categoryId":1,"status":"available"}'],
    });
  });

  it("with many invalid lines names the first, and says how many more there are", async () => {
    const invalid = (count: number) => read("{\n".repeat(count));
    const tenth = "line 10: is not valid JSON";
    expect(await invalid(13)).toEqual({ faults: expect.objectContaining({ length: 11, 9: tenth, 10: "and 3 more" }) });
    expect(await invalid(5000)).toEqual({ faults: expect.objectContaining({ 9: tenth, 10: "and 4990 more" }) });
  });

  it("with a line of 40 MB keeps the numbers of the lines after it", async () => {
    expect(await read(`${GOOD}\n${"x".repeat(40_000_000)}\n{\n${"y".repeat(3_000_000)}`)).toEqual({
      faults: [
        "line 2: is longer than any animal that the service accepts",
        "line 3: is not valid JSON",
        "line 4: is longer than any animal that the service accepts",
      ],
    });
  });

  it("must be a file", async () => {
    await expect(readInput(folder).next()).rejects.toThrow(`${folder} is not a regular file.`);
    await expect(readInput(join(folder, "nowhere.jsonl")).next()).rejects.toThrow(/^ENOENT: .*nowhere\.jsonl/);
  });
});

describe("the commands", () => {
  it("take one environment of wrangler.toml, or local, and one file", () => {
    for (const environment of ["local", "staging", "production"]) {
      expect(parseArguments([environment, "pets.jsonl"])).toEqual([environment, "pets.jsonl"]);
    }
    const problem = "Name exactly one environment and one file.";
    for (const wrong of ["", "local", "nowhere f", "toString f", "local f more", "f local"]) {
      expect(() => parseArguments(wrong.split(" "))).toThrow(problem);
    }
    expect(() => parseArguments(["local", ""])).toThrow(problem);
  });

  it("say what failed and what to do", () => {
    const again =
      "wrangler d1 execute failed. It did not finish. Run the same command again; a restore continues where it stopped.";
    expect(explain(new Failure("pets.jsonl is empty."))).toBe("pets.jsonl is empty.");
    expect(explain(failure('{"D1_RESET_DO":true}\n'))).toBe(`{"D1_RESET_DO":true}\n${again}`);
    expect(explain(failure("database is locked: SQLITE_BUSY"))).toBe(
      `database is locked: SQLITE_BUSY\n${again}\nAnother process uses the local store: stop \`npm run dev\` in this folder.`,
    );
    const fault = new TypeError("a fault of the program");
    expect(() => explain(fault)).toThrow(fault);
  });

  it("print nothing that controls a terminal", () => {
    expect(printable("größe 😀\n\u001b[2J\u0007\u009b1m\r\u202e\u2028\ud800")).toBe(
      "größe 😀\n\\u{1b}[2J\\u{7}\\u{9b}1m\\u{d}\\u{202e}\\u{2028}\\u{d800}",
    );
  });
});
