// Backups: that they keep every animal, exactly, and that they are loaded, again and again.

import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Readable } from "node:stream";
import { afterAll, describe, expect, it } from "vitest";
import { backupLines, ROWS_PER_QUERY } from "../../scripts/backup.ts";
import { type LoadCount, partsOf, summarize } from "../../scripts/load.ts";
import { prove, statementsOf } from "../../scripts/prove.ts";
import { description } from "../../src/description.ts";
import { INT64 } from "../../src/values/int64.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { launch, outcome } from "../processes.ts";
import { TABLES } from "../tables.ts";

const WINDOWS = process.platform === "win32";
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => removeProject(folder));

type Row = [name: string, categoryId: bigint, status: string, key: string | null, caller: string | null];

/** A database with the project's tables. */
function openDatabase(...rows: Row[]): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  database.exec(TABLES);
  const insert = database.prepare(`INSERT INTO pets
    (name, category_id, status, idempotency_key, created_by) VALUES (?, ?, ?, ?, ?)`);
  for (const row of rows) insert.run(...row);
  return database;
}

/** A backup: the environment, a line for each animal, and their number. */
const save = (database: DatabaseSync) => [...backupLines("local", (sql) => database.prepare(sql).all())];

/** Every row, to the last digit and byte. */
function contentOf(database: DatabaseSync) {
  const select = database.prepare("SELECT *, hex(name) AS name FROM pets");
  select.setReadBigInts(true);
  return select.all();
}

const STATUSES = ["available", "pending", "sold"];
const KEYS = [null, "", " ".repeat(251), "it's; BEGIN TRANSACTION;", "~".repeat(251)];
const CALLERS = ["API_KEY", "API_KEY_SHOP", `API_KEY_${"x".repeat(56)}`];
const CONTROLS = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code));
const NAMES = [
  ...[...CONTROLS, "\u007f", "\u0080", "\u009f", "\u2028", "\ufeff", "\uffff"].map(
    (character) => `${character}x${character}`,
  ),
  ...["x", CONTROLS.join(""), "😀".repeat(1000), "x".padStart(1000, "\u0001"), "e\u0301 \u00e9 \u{10ffff}"],
  ...["BEGIN TRANSACTION; COMMIT;", "Begin Transaction", "it's '); DROP TABLE pets; --", '/* " ` [ \\n ?1 :a @b $c'],
];

/** What callers can store at the limits of each rule. */
const EDGES = NAMES.map((name, at): Row => {
  const integer = at % 2 ? INT64.minimum + BigInt(at) : INT64.maximum - BigInt(at);
  const prefix = KEYS[at % KEYS.length] ?? null;
  const key = prefix === null ? null : `${prefix}${String(at).padStart(4)}`;
  const caller = key === null && at % 2 ? null : (CALLERS[at % CALLERS.length] ?? null);
  return [name, integer, STATUSES[at % 3] ?? "", key, caller];
});

it("has a line for each animal, with which SQLite stores exactly what callers stored", () => {
  const [store, copy] = [openDatabase(...EDGES), openDatabase()];
  const lines = save(store).slice(1, -1);
  for (const line of lines) copy.exec(line);
  expect(contentOf(copy)).toEqual(contentOf(store));
  expect(lines.join("").match(/\p{Cc}/gu)).toEqual(EDGES.map(() => "\n"));
});

/** Saves 4,500 animals, which are two pages. `meanwhile`: what happens after each query. */
function saveMany(meanwhile: string): string[] {
  const store = openDatabase(...Array.from({ length: 4500 }, (): Row => ["Rex", 1n, "sold", null, null]));
  const query = (sql: string) => {
    const rows = store.prepare(sql).all();
    store.exec(meanwhile);
    return rows;
  };
  return [...backupLines("local", query)];
}

it("has the animals that were there at the start, in the order of ids, while callers add more", () => {
  const [first, ...lines] = saveMany("INSERT INTO pets (name, category_id, status) VALUES ('Late', 1, 'sold')");
  expect([first, lines.pop()]).toEqual(["-- Animals of local\n", "SELECT 4500 AS animals;\n"]);
  const ids = lines.map((line) => Number(/VALUES \((\d+), 'Rex'/.exec(line)?.[1]));
  expect(ids).toEqual(Array.from({ length: 4500 }, (_, at) => at + 1));
});

it.each([0, 4400, 4499])("is not made if all animals after the id %i are removed meanwhile", (id) => {
  const note = "INSERT INTO corrections (pet_id, reason) SELECT id, 'A test' FROM pets";
  const remove = `${note}; DELETE FROM pets WHERE id > ${id}`;
  expect(() => saveMany(remove)).toThrow("Animals were removed while they were saved: run this again.");
});

it("reads pages of at most 50 MB, which D1 can return, even of the longest animals in hexadecimal digits", () => {
  // In bytes. The description has the limits of other texts, in characters of at most four bytes.
  const limits: Record<string, number> = { status: 9, idempotency_key: 255, created_by: 64 };
  for (const [name, { maxLength }] of Object.entries(description.components.schemas["Pet"]?.properties ?? {}))
    if (maxLength) limits[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = 4 * maxLength;
  const columns = openDatabase().prepare("SELECT name, type FROM pragma_table_info('pets')").all();
  const row = columns.map(({ name, type }) => {
    if (type !== "TEXT") return [name, `${INT64.minimum}`];
    const bytes = limits[String(name)] ?? expect.fail(`How many bytes can ${name} have?`);
    return [name, `CAST(X'${"00".repeat(bytes)}' AS TEXT)`];
  });
  expect(ROWS_PER_QUERY * JSON.stringify(Object.fromEntries(row)).length).toBeLessThanOrEqual(50_000_000);
});

/** Writes a file, and returns its path. */
function fileOf(text: string | Buffer): string {
  const file = join(mkdtempSync(join(folder, "file-")), "animals.sql");
  writeFileSync(file, text);
  return file;
}

const animal = (id: number, name = "'Rex'") =>
  `INSERT INTO pets (id, name, category_id, status) VALUES (${id}, ${name}, 7, 'sold') ON CONFLICT DO NOTHING;\n`;

describe("a proof", () => {
  const proofOf = (text: string | Buffer) => prove(fileOf(text), "local", openDatabase());

  it("counts what a file adds, with or without its first line, a BOM, CRLF, empty lines, and again", async () => {
    const backup = save(openDatabase(...EDGES));
    const [, ...rest] = backup;
    const [animals, last] = [EDGES.length, String(EDGES.length)];
    const crlf = ["\ufeff\r\n", ...backup.map((line) => line.replace("\n", "\r\n")), "\r\n"];
    for (const lines of [backup, rest, rest.slice(0, -1), crlf])
      expect(await proofOf(lines.join(""))).toEqual({ animals, last, lines: animals });
    // Node reads a file in parts of 64 KiB.
    expect(await proofOf(backup.join("").repeat(9))).toEqual({ animals, last, lines: 9 * animals });
    expect(await proofOf("-- Animals of local\nSELECT 0 AS animals;")).toEqual({ animals: 0, last: null, lines: 0 });
    const statements = await Array.fromAsync(statementsOf(fileOf(crlf.join("")), "local"));
    expect(statements.map(([, sql]) => `${sql}\n`)).toEqual(rest);
  });

  it("names a line that is anything else, and executes nothing from there on", async () => {
    const values = [
      ...["x", "lower('X')", "1 + 1", "(SELECT 1)", '"Rex"', "x'52'", "-- '"],
      ...["'Rex", "'R'x'", "'\r'", "'\0'", `'${"x".repeat(100_000)}'`],
    ];
    const line = animal(3).trim();
    const bad = [
      ...["-- a comment", ".shell true", "ATTACH 'x' AS x;", "UPDATE pets SET name = 'x';", "DROP TRIGGER pets_stay;"],
      ...values.map((value) => line.replace("'Rex'", () => value)),
      ...[line.replace("(3, ", "(NULL, "), line.replace("(id, ", "(").replace("(3, ", "(")],
      ...["REPLACE", "INSERT OR REPLACE"].map((verb) => line.replace("INSERT", verb)),
      ...["", " DO UPDATE SET name = 'x'", " DO NOTHING RETURNING *"].map((end) => line.replace(" DO NOTHING", end)),
      ...[`${line} DELETE FROM pets;`, `${line} -- x`, line.replace("pets", "x"), "SELECT count(*) FROM pets;"],
    ];
    for (const text of bad) {
      const database = openDatabase();
      const proof = prove(fileOf(`${animal(1)}\n${text}\n${animal(4)}`), "local", database);
      await expect(proof, text).rejects.toThrow(/^Line 3 is cut off, or not INSERT INTO pets /);
      expect(contentOf(database)).toHaveLength(1);
    }
  });

  it("names the line that the table refuses, and a number that is wrong", async () => {
    const cases = {
      "Line 2: CHECK constraint failed: ": animal(2, "' '"),
      "Line 2: An id is a time in milliseconds, and this one is ahead of the clock.": animal(20261128014744),
      "Line 3: 1 animals are before it, not 2: lines are missing or repeated.": `${animal(1)}SELECT 2 AS animals;\n`,
      "Line 2: 1 animals are before it, not 0: lines are missing or repeated.": "SELECT 0 AS animals;\n",
    };
    for (const [message, lines] of Object.entries(cases))
      await expect(proofOf(animal(1) + lines), message).rejects.toThrow(message);
  });

  it("refuses a file that names a different environment, is incomplete, or is not UTF-8", async () => {
    const backup = save(openDatabase(...EDGES)).join("");
    const first = "-- Animals of staging";
    for (const text of [`${first}\n`, `\ufeff${first} \r\n`, `${backup}${first}\n`])
      await expect(proofOf(text)).rejects.toThrow(
        "Its first line names staging, not local. If that is meant, write local",
      );
    for (const text of ["", "\n", backup.slice(0, backup.lastIndexOf("SELECT")), backup + animal(99)])
      await expect(proofOf(text)).rejects.toThrow("This file is incomplete: its last line must say how many");
    await expect(proofOf(backup.slice(0, -5))).rejects.toThrow(/^Line \d+ is cut off/);
    await expect(proofOf(animal(1, "'Begin Transaction'"))).rejects.toThrow(
      "Line 1: Wrangler removes BEGIN TRANSACTION",
    );
    await expect(proofOf(Buffer.from(animal(1, "'Zoë'"), "latin1"))).rejects.toThrow("not valid for encoding utf-8");
  });
});

describe("npm run load", () => {
  it("divides lines into parts of 5,000 or of about 3 MB, each with a new first line", async () => {
    const partsOfLines = (...lines: string[]) =>
      Array.fromAsync(partsOf(Readable.from(lines.map((line) => [1, line]))), (part) => part.replace(/\(.*?\)/, ""));
    const first = (part: number) => `-- Part ${part} \n`;
    const divided = [5000, 5000, 2000].map((count, at) => first(at + 1) + "a\u2028b'\n".repeat(count));
    expect(await partsOfLines(...Array(12_000).fill("a\u2028b'"))).toEqual(divided);
    const long = "猫".repeat(333_333); // 1 MB
    const unequal = [`${first(1)}${`${long}\n`.repeat(3)}`, `${first(2)}${long}\n`];
    expect(await partsOfLines(...Array(4).fill(long))).toEqual(unequal);
  });

  it("says what it did, from the animals before and after it", () => {
    const none = { animals: 0, last: null, own: 0 };
    const says = (lines: number, before?: LoadCount, own = 1460) =>
      summarize("staging", lines, before, { animals: 1460, last: "1795132800000", own });
    const [skipped, has] = [
      "skipped (id or Idempotency-Key taken)",
      "staging has 1,460 animals up to the id 1795132800000",
    ];
    expect(says(1501, none)).toBe(`1,501 lines: 1,460 animals added, 41 ${skipped}; ${has}`);
    const open = "callers have added others, because the service is open";
    expect(says(1501, none, 1450)).toBe(`1,501 lines: 1,450 animals added, 51 ${skipped}; ${open}; ${has}`);
    expect(says(1459, none)).toBe(`1,459 lines: 1,460 animals added, 0 ${skipped}; ${open}; ${has}`);
    expect(says(1501)).toBe(`1,501 lines are loaded; ${has}`);
  });

  it("loads a backup again and again, and saves the same file", async () => {
    const project = copyProject();
    const npm = (...args: string[]) => outcome(launch("npm", ["run", "--silent", ...args], project));
    const [tables, saved] = [fileOf(TABLES), join(folder, "saved.sql")];
    await outcome(launch("npx", ["wrangler", "d1", "execute", "DB", "--local", "--file", tables], project));
    const backup = save(openDatabase(...EDGES));
    const has = `has ${EDGES.length} animals up to the id ${EDGES.length}\n`;
    const { status, output, errors } = await npm("load", "--", "local", fileOf([...backup, ...backup].join("")));
    const lines = `${2 * EDGES.length} lines: ${EDGES.length} animals added, ${EDGES.length} skipped`;
    expect([status, errors, output]).toEqual([0, "", expect.stringMatching(/^Part 1 \(.*\) is loaded\.\n/)]);
    expect(output).toContain(`\n${lines} (id or Idempotency-Key taken); local ${has}`);
    const progress = `${EDGES.length} animals up to the id ${EDGES.length} of ${EDGES.length}\n`;
    const expected = { status: 0, output: `Saved: ${saved} ${has}`, errors: progress };
    expect(await npm("backup", "--", "local", saved)).toEqual(expected);
    const again = { status: 1, errors: `${saved} already exists: take another name.\n` };
    expect(await npm("backup", "--", "local", saved)).toMatchObject(again);
    expect(readFileSync(saved, "utf8")).toBe(backup.join(""));
    if (!WINDOWS) expect(statSync(saved).mode & 0o777).toBe(0o600);
    removeProject(project);
  });
});
