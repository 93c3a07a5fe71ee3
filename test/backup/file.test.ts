// What a restore accepts as a file, line by line, and what arguments the commands take.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseArguments } from "../../scripts/backup/command.ts";
import { checkFile, readLines } from "../../scripts/backup/file.ts";
import { printable } from "../../scripts/command-line.ts";

const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
const file = join(folder, "pets.jsonl");
afterAll(() => rmSync(folder, { recursive: true }));

/** The lines of a file with this content, as JSON. */
async function read(content: string | Buffer): Promise<string[]> {
  writeFileSync(file, content);
  await checkFile(file);
  return Array.fromAsync(readLines(file), ({ text }) => text);
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

describe("a line", () => {
  it.each([
    ["is not valid JSON in UTF-8", '{"id":2,"name":"\xff","categoryId":1}'],
    ["is not a JSON object", "[]"],
    ["is longer than 16384 bytes", withMore('"status":"sold"').padEnd(16_385)],
    [`${ID}; ${KEY}`, '{"id":0,"name":"a","categoryId":1,"idempotencyKey":null}'],
    [ID, '{"id":4611686018427387905,"name":"a","categoryId":1}'],
    [KEY, withMore(`"createdBy":"API_KEY","idempotencyKey":"${"k".repeat(256)}"`)],
    [KEY, withMore('"createdBy":"API_KEY","idempotencyKey":"\\t"')],
    ["an idempotencyKey needs a createdBy", withMore('"idempotencyKey":"l"')],
    ["createdBy must be the name of a caller", withMore(`"createdBy":"API_KEY_${"x".repeat(57)}"`)],
    ["createdAt must be an integer", withMore('"createdAt":1.5')],
    ["has the idempotencyKey of an earlier line", withMore('"createdBy":"API_KEY","idempotencyKey":"k"')],
    ["id must be greater than 1, the id of an earlier line", GOOD],
    ["either all lines must have an id, or none", '{"name":"a","categoryId":1}'],
    ["unknown property Status (allowed: id, name, ", withMore('"Status":"sold"')],
  ])("is rejected by its number: %s", async (fault, line) => {
    const next = GOOD.replace("1", "9").replace('"k"', '"l"');
    expect(await faultsOf(Buffer.from(`${GOOD}\n${line}\n${next}\n`, "latin1"))).toEqual([
      expect.stringContaining(`line 2: ${fault}`),
    ]);
  });
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

  it("with many invalid lines names the first", async () => {
    expect((await faultsOf("{\n".repeat(5000))).length).toBe(10);
  });

  it("that does not end is read to its first overlong line", async () => {
    expect(await faultsOf(`${"x".repeat(40_000_000)}\n{\n`)).toEqual(["line 1: is longer than 16384 bytes"]);
  });

  it("must exist, be a file, and not be empty", async () => {
    await expect(read("")).rejects.toThrow(`${file} is empty. Name a file with`);
    await expect(checkFile(folder)).rejects.toThrow(`${folder} is not a file.`);
    await expect(checkFile(`${file}2`)).rejects.toThrow(`${file}2 does not exist.`);
    // On Windows, there are none. A read would wait for a writer.
    if (process.platform === "win32") return;
    execFileSync("mkfifo", [`${file}3`]);
    await expect(checkFile(`${file}3`)).rejects.toThrow(`${file}3 is not a file.`);
  });

  it("may have the same idempotencyKey for two callers", async () => {
    const lines = [GOOD, GOOD.replace('"id":1', '"id":2').replace("API_KEY", "API_KEY_SHOP")];
    expect(await read(lines.join("\n"))).toEqual(lines);
  });
});

describe("the commands", () => {
  it("take one known environment and one file", () => {
    expect(parseArguments(["staging", "f"], ["local", "staging"])).toEqual(["staging", "f"]);
    for (const wrong of ["local", "local f --more", "prod f"]) {
      expect(() => parseArguments(wrong.split(" "), ["local", "staging"])).toThrow(
        "Name one environment and one file.",
      );
    }
  });

  it("print nothing that controls a terminal", () => {
    expect(printable("größe 😀\n\u001b[2J\u0007\u009b1m\r\u202e\u2028\ud800")).toBe(
      "größe 😀\n\\u{1b}[2J\\u{7}\\u{9b}1m\\u{d}\\u{202e}\\u{2028}\\u{d800}",
    );
  });
});
