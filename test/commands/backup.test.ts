// Backups: that they keep every animal, exactly, and that Wrangler loads them, again and again.

import { mkdtempSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { sqlOf, writeNew } from "../../scripts/backup.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { launch, outcome, run } from "../processes.ts";

const WINDOWS = process.platform === "win32";
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => removeProject(folder));

type Row = [name: string, categoryId: bigint, status: string, key: string | null, caller: string | null, time: bigint];

/** A database with the project's tables. */
function openDatabase(...rows: Row[]): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  for (const file of readdirSync("migrations").sort()) database.exec(readFileSync(`migrations/${file}`, "utf8"));
  const insert = database.prepare(`INSERT INTO pets
    (name, category_id, status, idempotency_key, created_by, created_at) VALUES (?, ?, ?, ?, ?, ?)`);
  for (const row of rows) insert.run(...row);
  return database;
}

/** A backup: what moves the counter, and the lines. */
function save(database: DatabaseSync): [moveCounter: string, ...lines: string[]] {
  const [moveCounter = "", ...lines] = sqlOf((sql) => database.prepare(sql).all());
  return [moveCounter, ...lines];
}
const linesOf = (database: DatabaseSync) => save(database).slice(1);

/** Every row, to the last digit and byte. */
function contentOf(database: DatabaseSync) {
  const select = database.prepare("SELECT *, hex(name) AS name FROM pets");
  select.setReadBigInts(true);
  return select.all();
}

const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const STATUSES = ["available", "pending", "sold"];
const KEYS = [null, "", " ".repeat(251), "it's; BEGIN TRANSACTION;", "~".repeat(251)];
const CALLERS = ["API_KEY", "API_KEY_SHOP", `API_KEY_${"x".repeat(56)}`];
const CONTROLS = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code));
const NAMES = [
  ...[...CONTROLS, "\u007f", "\u0085", "\u2028", "\ufeff", "\uffff"].map((character) => `${character}x${character}`),
  ...["x", CONTROLS.join(""), "😀".repeat(1000), "x".padStart(1000, "\u0001"), "e\u0301 \u00e9"],
  ...["BEGIN TRANSACTION; COMMIT;", "Begin Transaction", "it's '); DROP TABLE pets; --", '/* " ` [ \\n ?1 :a @b $c'],
];

/** What callers can store at the limits of each rule. */
const EDGES = NAMES.map((name, at): Row => {
  const key = KEYS[at % KEYS.length];
  return [
    name,
    at % 2 ? INT64.min + BigInt(at) : INT64.max - BigInt(at),
    STATUSES[at % 3] ?? "",
    key === undefined || key === null ? null : `${key}${String(at).padStart(4)}`,
    CALLERS[at % CALLERS.length] ?? null,
    BigInt(at),
  ];
});

it("has a line for each animal, with which SQLite stores exactly what callers stored", () => {
  const special = fc.constantFrom(...CONTROLS, ..."'\"\\;-/*\u007f\u0085\u2028\ufeff\uffff😀");
  const any = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
  const row: fc.Arbitrary<Row> = fc.tuple(
    fc.string({ unit: fc.oneof(special, any) }).map((name) => `${name}x`),
    fc.oneof(fc.constantFrom(INT64.min, INT64.max, 2n ** 53n + 1n), fc.bigInt(INT64)),
    fc.constantFrom(...STATUSES),
    fc.constant(null),
    fc.constantFrom(null, ...CALLERS),
    fc.bigInt(INT64),
  );
  const isExact = (rows: Row[]) => {
    const [store, copy] = [openDatabase(...rows), openDatabase()];
    const lines = linesOf(store);
    for (const line of lines) copy.exec(line);
    expect(contentOf(copy)).toEqual(contentOf(store));
    expect(lines.join("").split("\n").length - 1).toBe(rows.length);
  };
  isExact(EDGES);
  fc.assert(fc.property(fc.array(row), isExact), { numRuns: 100 });
});

/** Saves 4,500 animals, which are two pages. `meanwhile`: what happens after each query. */
function saveMany(meanwhile: string): string[] {
  const store = openDatabase(...Array.from({ length: 4500 }, (): Row => ["Rex", 1n, "sold", null, null, 0n]));
  const query = (sql: string) => {
    const rows = store.prepare(sql).all();
    store.exec(meanwhile);
    return rows;
  };
  return [...sqlOf(query)].slice(1);
}

it("has the animals that were there at the start, in the order of ids, while callers add more", () => {
  const lines = saveMany("INSERT INTO pets (name, category_id, status) VALUES ('Late', 1, 'sold')");
  const ids = lines.map((line) => Number(/VALUES \((\d+), 'Rex'/.exec(line)?.[1]));
  expect(ids).toEqual(Array.from({ length: 4500 }, (_, at) => at + 1));
});

it.each([0, 4400, 4499])("is not made if all animals after the id %i are removed meanwhile", (id) => {
  const note = "INSERT INTO corrections (pet_id, reason) SELECT id, 'A test' FROM pets";
  const remove = `${note}; DELETE FROM pets WHERE id > ${id}`;
  expect(() => saveMany(remove)).toThrow("Animals were removed while they were saved: run this again.");
});

it("moves the counter of ids on before its animals, in an empty store, too, and whenever it is loaded", () => {
  const [moveCounter, ...lines] = save(openDatabase(...EDGES));
  const store = openDatabase();
  const nextId = () =>
    store.prepare("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold') RETURNING id").get()?.["id"];
  store.exec(moveCounter);
  const first = nextId();
  expect(first).toBeGreaterThan(Date.now() + 990_000);
  store.exec([moveCounter, ...lines].join(""));
  expect(nextId()).toBeGreaterThan(Number(first) + 990_000);
  expect(linesOf(store).slice(0, -2)).toEqual(lines);
});

it("is loaded into a table that has a newer column, which it covers", () => {
  const [store, newer] = [openDatabase(...EDGES), openDatabase()];
  newer.exec("ALTER TABLE pets ADD COLUMN newer TEXT DEFAULT 'unknown'");
  for (const line of linesOf(store)) newer.exec(line);
  const expected = linesOf(store).map((line) => line.replace(") VALUES (", ", newer) VALUES ("));
  expect(linesOf(newer)).toEqual(
    expected.map((line) => line.replace(/(?=\) ON CONFLICT DO NOTHING;\n$)/, ", 'unknown'")),
  );
});

it("is loaded by Wrangler, twice, and is the same when it is saved again", async () => {
  const project = copyProject();
  const [file, again] = [join(folder, "edges.sql"), join(folder, "again.sql")];
  const lines = save(openDatabase(...EDGES)).join("");
  const tables = readdirSync("migrations").map((name) => readFileSync(`migrations/${name}`, "utf8"));
  writeFileSync(file, [...tables, lines, lines].join(""));
  await run("npx", ["wrangler", "d1", "execute", "DB", "--local", "--file", file], project);
  const backup = (...args: string[]) => outcome(launch("npm", ["run", "--silent", "backup", "--", ...args], project));
  const output = `Saved ${EDGES.length} animals of local in ${again}.\n`;
  expect(await backup("local", again)).toEqual({ status: 0, output, errors: "" });
  expect(readFileSync(again, "utf8")).toBe(lines);
  if (!WINDOWS) expect(statSync(again).mode & 0o777).toBe(0o600);
  const usage = "usage: npm run backup -- <local|staging|production> <file>\n";
  expect(await backup("prod", again)).toEqual({ status: 1, output: "", errors: usage });
  removeProject(project);
});

it("never overwrites a file, nor what appears meanwhile, and leaves nothing if it fails", async () => {
  const file = join(folder, "taken.sql");
  const files = readdirSync(folder);
  const failing = function* () {
    yield "x";
    throw new Error("Wrangler failed.");
  };
  await expect(writeNew(file, failing())).rejects.toThrow("Wrangler failed.");
  expect(readdirSync(folder)).toEqual(files);
  const slow = function* () {
    writeFileSync(file, "kept");
    yield "x";
  };
  await expect(writeNew(file, slow())).rejects.toThrow("EEXIST");
  await expect(writeNew(file, [])).rejects.toThrow(`${file} already exists.`);
  expect(readFileSync(file, "utf8")).toBe("kept");
  if (WINDOWS) return; // Only an administrator can make a link.
  symlinkSync(join(folder, "target"), join(folder, "link"));
  await expect(writeNew(join(folder, "link"), [])).rejects.toThrow("already exists");
});
