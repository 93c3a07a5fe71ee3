// Backups: that they keep every animal, exactly, and that they are loaded, again and again.

import { mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Readable } from "node:stream";
import { afterAll, describe, expect, it } from "vitest";
import { backupLines, PAGE, writeNew } from "../../scripts/backup.ts";
import { partsOf } from "../../scripts/load.ts";
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
  ...[...CONTROLS, "\u007f", "\u0085", "\u2028", "\ufeff", "\uffff"].map((character) => `${character}x${character}`),
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
  expect(lines.join("").split("\n").length - 1).toBe(EDGES.length);
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
  expect(PAGE * JSON.stringify(Object.fromEntries(row)).length).toBeLessThanOrEqual(50_000_000);
});

describe("npm run load", () => {
  const parts = (environment: string, ...chunks: string[]) =>
    Array.fromAsync(partsOf(Readable.from(chunks), environment, "today"));

  it("divides a file into parts of whole lines, of 5,000 or of about 3 MB, each with a new first line", async () => {
    const line = "a\u2028b\r'\n";
    const text = line.repeat(12_000);
    const first = (part: number) => `-- Part ${part} (today)\n`;
    const divided = [5000, 5000, 2000].map((count, at) => first(at + 1) + line.repeat(count));
    expect(await parts("local", text)).toEqual(divided);
    expect(await parts("local", ...(text.match(/.{1,7}/gs) ?? []))).toEqual(divided);
    const long = `${"猫".repeat(333_333)}\n`; // 1 MB
    const unequal = [first(1) + long.repeat(3), `${first(2)}${long}no line break`];
    expect(await parts("local", long.repeat(4), "no line break")).toEqual(unequal);
  });

  it("refuses a file that names a different environment, and accepts one that names none", async () => {
    for (const text of ["-- Animals of staging\n", "\ufeff-- Animals of staging \r\n"]) {
      const refused = parts("production", text.slice(0, 9), text.slice(9));
      await expect(refused).rejects.toThrow("This file has the animals of staging, not of production.");
    }
    const text = "SELECT 1;\n-- Animals of staging\n";
    expect(await parts("production", text)).toEqual([`-- Part 1 (today)\n${text}`]);
  });

  it("refuses a backup that ends too early, at its last part, and accepts several in one file", async () => {
    const backup = save(openDatabase(...EDGES));
    const [, ...rest] = backup;
    for (const whole of [backup, [...backup, ...backup], backup.map((line) => line.replace("\n", "\r\n")), rest])
      expect(await parts("local", ...whole)).toEqual([`-- Part 1 (today)\n${whole.join("")}`]);
    const text = backup.join("");
    for (const end of [0, text.indexOf("\n") + 1, 999, -5, -1 - String(backup.at(-1)).length])
      await expect(parts("local", text.slice(0, end))).rejects.toThrow("This file is incomplete");
    const long = partsOf(Readable.from([`${text}${"SELECT 1;\n".repeat(5000)}`]), "local", "today");
    expect((await long.next()).value).toContain(text);
    await expect(long.next()).rejects.toThrow("This file is incomplete");
  });

  it("loads a backup again and again, and saves the same file; after a failure, it says what to do", async () => {
    const project = copyProject();
    const npm = (...args: string[]) => outcome(launch("npm", ["run", "--silent", ...args], project));
    const [file, saved, bad] = [join(folder, "edges.sql"), join(folder, "saved.sql"), join(folder, "bad.sql")];
    const backup = save(openDatabase(...EDGES));
    writeFileSync(file, [TABLES, ...backup, ...backup].join(""));
    expect(await npm("load", "--", "local", file)).toMatchObject({
      status: 0,
      output: expect.stringContaining(`local has ${EDGES.length} animals now.`),
    });
    const output = `Saved the animals of local in ${saved}.\n`;
    const errors = expect.stringMatching(`^${EDGES.length} animals, up to the id (\\d+) of \\1\n$`);
    expect(await npm("backup", "--", "local", saved)).toEqual({ status: 0, output, errors });
    expect(readFileSync(saved, "utf8")).toBe(backup.join(""));
    if (!WINDOWS) expect(statSync(saved).mode & 0o777).toBe(0o600);

    writeFileSync(bad, "INSERT INTO pets (id, name, category_id, status) VALUES (20261128014744, 'Rex', 7, 'sold');\n");
    const failed = await npm("load", "--", "local", bad);
    const failure =
      /this one is ahead of the clock[\s\S]*\nThe command above failed\.\nWhat was loaded stays: run the same/;
    expect(failed).toMatchObject({ status: 1, errors: expect.stringMatching(failure) });
    expect(failed.errors).not.toMatch(/^ +at /m);
    removeProject(project);
  });
});

it("never overwrites a file, nor what appears meanwhile", async () => {
  const [file, partial] = [join(folder, "taken.sql"), join(folder, "partial")];
  const slow = function* () {
    writeFileSync(file, "kept");
    yield "x";
  };
  await expect(writeNew(file, partial, slow())).rejects.toThrow("EEXIST");
  await expect(writeNew(file, partial, [])).rejects.toThrow(`${file} already exists: take another name.`);
  expect(readFileSync(file, "utf8")).toBe("kept");
  if (WINDOWS) return; // Only an administrator can make a link.
  symlinkSync(join(folder, "target"), join(folder, "link"));
  await expect(writeNew(join(folder, "link"), partial, [])).rejects.toThrow("already exists");
});
