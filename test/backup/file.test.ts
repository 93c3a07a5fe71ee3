// What a restore accepts as a file, line by line.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readFiles, select } from "../../scripts/backup/file.ts";
import { folder, newFile } from "./files.ts";

const WINDOWS = process.platform === "win32";
const file = newFile();

/** The lines of a file with this content, as a backup writes them. */
async function read(content: string | Buffer): Promise<string[]> {
  writeFileSync(file, content);
  return [...select(await readFiles({ lines: file }), "SELECT line FROM lines ORDER BY id")];
}

/** What is wrong with the lines of a file with this content. */
async function faultsOf(content: string | Buffer): Promise<string[]> {
  const failure = await read(content).catch((thrown) => thrown);
  const [first, ...faults] = failure.message.split("\n");
  expect(first).toBe(`${file} has invalid lines. The first ones are:`);
  expect(faults.pop()).toBe("Correct the file, and run the same command again.");
  return faults;
}

const GOOD = '{"id":1,"name":"Rex","categoryId":1,"status":"sold","idempotencyKey":"k","createdBy":"API_KEY"}';
const KEY = "idempotencyKey must be a string of 1 to 255 printable ASCII characters";
const ID = "id must be an integer from 1 to 4611686018427387904";
const withMore = (members: string) => `{"id":2,"name":"a","categoryId":1,${members}}`;

it.each([
  ["is not valid JSON in UTF-8", '{"id":2,"name":"\xff","categoryId":1}'],
  ["is not a JSON object", "[]"],
  [`${ID}; ${KEY}`, '{"id":0,"name":"a","categoryId":1,"idempotencyKey":null}'],
  [ID, '{"id":4611686018427387905,"name":"a","categoryId":1}'],
  [KEY, withMore(`"createdBy":"API_KEY","idempotencyKey":"${"k".repeat(256)}"`)],
  [KEY, withMore('"createdBy":"API_KEY","idempotencyKey":"\\t"')],
  ["idempotencyKey is possible only with createdBy", withMore('"idempotencyKey":"l"')],
  ["createdBy must be the name of a caller", withMore(`"createdBy":"API_KEY_${"x".repeat(57)}"`)],
  ["createdAt must be an integer", withMore('"createdAt":1.5')],
  ["has the idempotencyKey of an earlier line", withMore('"createdBy":"API_KEY","idempotencyKey":"k"')],
  ["id must be greater than 1, the id of an earlier line", GOOD],
  ["either all lines must have an id, or none", '{"name":"a","categoryId":1}'],
  ["unknown property Status (allowed: id, name, ", withMore('"Status":"sold"')],
])("a line is rejected by its number: %s", async (fault, line) => {
  const next = GOOD.replace("1", "9").replace("API_KEY", "API_KEY_SHOP");
  expect(await faultsOf(Buffer.from(`${GOOD}\n${line}\n${next}\n`, "latin1"))).toEqual([
    expect.stringContaining(`line 2: ${fault}`),
  ]);
});

describe("a file", () => {
  it("may be written by hand or on Windows: with a byte order mark, CRLF, blanks, no newline at its end", async () => {
    const content =
      '\ufeff{ "name": "\u2028\\ud83d\\udc36", "categoryId": 1e2 }\r\n{"status":"sold","categoryId":2,"name":"Tom"}';
    expect(await read(content)).toEqual([
      '{"id":1,"name":"\u2028🐶","categoryId":100,"status":"available"}',
      '{"id":2,"name":"Tom","categoryId":2,"status":"sold"}',
    ]);
  });

  it("with many invalid lines is read to the tenth", async () => {
    expect((await faultsOf("{\n".repeat(5000))).length).toBe(10);
  });

  it("with a long line, such as an image, is read to that", async () => {
    const row = '{"name":"a","categoryId":1}';
    expect(await faultsOf(`${row}${" ".repeat(200_000)}\n{`)).toEqual(["line 1: is longer than 16384 bytes"]);
    expect((await read(`${row}${" ".repeat(16_000)}\n`.repeat(20))).length).toBe(20);
  });

  it("must exist, and be a file, because a named pipe waits forever", async () => {
    await expect(readFiles({ lines: newFile() })).rejects.toThrow("jsonl does not exist.");
    await expect(readFiles({ lines: folder })).rejects.toThrow(`${folder} is not a file.`);
    if (WINDOWS) return;
    const pipe = newFile();
    execFileSync("mkfifo", [pipe]);
    await expect(readFiles({ lines: pipe })).rejects.toThrow(`${pipe} is not a file.`);
  });
});
