// Backup and restore between stores: what is kept, what a failed import leaves, and what is rejected.

import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { insertSql, LINE_BYTES, storedLine } from "../../scripts/backup/lines.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { printJson } from "../../src/values/json.ts";
import { described } from "../conformance.ts";
import { type Database, failure, openDatabase } from "./sqlite-store.ts";

const WINDOWS = process.platform === "win32";
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));

// Backups remove their files when the process ends, but Vitest skips that event.
process.setMaxListeners(0);
vi.stubEnv("TMPDIR", folder);

const print = vi.spyOn(console, "log").mockImplementation(() => {});
beforeEach(() => void print.mockClear());
const printed = () => print.mock.calls.flat().join("\n");

let files = 0;
const newFile = () => join(folder, `${++files}.jsonl`);

function fileOf(lines: string[], file = newFile()): string {
  writeFileSync(file, text(lines));
  return file;
}

const text = (lines: string[]) => lines.map((line) => `${line}\n`).join("");

/** Adds animals as another program would. */
const add = ({ sqlite }: Database, ...lines: string[]) => sqlite.exec(lines.map(storedLine).map(insertSql).join(""));

/** Adds animals with the ids from 1 on. `name`: SQL, in which `?` is `value`. */
const addMany = ({ sqlite }: Database, count: number, name: string, value: string) =>
  sqlite
    .prepare(`WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
      INSERT INTO pets (id, name, category_id, status) SELECT id, ${name}, 1, 'sold' FROM ids`)
    .run(value);

/** What the store holds, by a backup. */
async function saved({ store }: Database): Promise<string> {
  const file = newFile();
  await backup(store, file);
  return readFileSync(file, "utf8");
}

const RESET = failure('{"D1_RESET_DO":true}');
const MIN = "-9223372036854775808";
const MAX = "9223372036854775807";

/** Each as SQLite prints it. */
const EXTREMES = [
  `{"id":1,"name":"least","categoryId":${MIN},"status":"available"}`,
  `{"id":2,"name":"${"'".repeat(4_000)}","categoryId":-1,"status":"pending"}`,
  `{"id":3,"name":"${"\\u0001".repeat(660)}","categoryId":0,"status":"sold","idempotencyKey":"'"}`,
  `{"id":4,"name":"a\\u0000b\\u0000","categoryId":9007199254740993,"status":"sold","idempotencyKey":"${"~".repeat(255)}"}`,
  `{"id":5,"name":"\u2028;\u2029; -- \u0085\u007f\\r\\n\\t\\"'\\\\","categoryId":1,"status":"sold","idempotencyKey":"\\"a,\\\\ b\\""}`,
  `{"id":6,"name":"BEGIN TRANSACTION; COMMIT;","categoryId":1,"status":"available","idempotencyKey":"BEGIN TRANSACTION;"}`,
  `{"id":7,"name":"${" ".repeat(4_000)}\\u0000","categoryId":1,"status":"available"}`,
  `{"id":8,"name":"${"😀".repeat(1_000)}\ufeff","categoryId":1,"status":"available"}`,
  // The longest: a body of 4,096 bytes.
  `{"id":9,"name":"${"x".repeat(4_051)}","categoryId":${MIN},"status":"available","idempotencyKey":"${"\\\\".repeat(255)}"}`,
  `{"id":9007199254740993,"name":"\\u0000","categoryId":1,"status":"available"}`,
  `{"id":4611686018427387904,"name":"greatest","categoryId":${MAX},"status":"available"}`,
];

/** With a gap in the ids, and keys. */
const LINES = Array.from({ length: 30 }, (_, index) => {
  const id = index < 15 ? index + 1 : index + 100;
  const key = index % 3 ? "" : `,"idempotencyKey":"key ${id}"`;
  return `{"id":${id},"name":"Rex ${id}","categoryId":${id},"status":"sold"${key}}`;
});
/** Characters of SQL for four of them. */
const PART = 1_000;
const LINE = (id: number) => `{"id":${id},"name":"Tom","categoryId":1,"status":"sold"}`;

const OLD = [LINE(1), ...LINES.slice(1, 4), LINE(6).replace("Tom", "Caller")];

/** A store with `lines`, and a file next to which a restore saves them: `copies` are the contents of what it saved. */
async function setUp(lines: string[], replacement = LINES) {
  const database = await openDatabase();
  add(database, ...lines);
  const subfolder = mkdtempSync(join(folder, "replace-"));
  const file = fileOf(replacement, join(subfolder, "pets.jsonl"));
  const names = () => readdirSync(subfolder).filter((name) => /^before-staging-2[\dTZ-]+\.jsonl$/.test(name));
  const copies = () => names().map((name) => readFileSync(join(subfolder, name), "utf8"));
  return { database, file, copies };
}

describe("backup and restore", () => {
  it("keep everything that the service accepts, exactly", async () => {
    const [database, file] = [await openDatabase(), fileOf(EXTREMES)];
    const end = `Restored staging from ${file}: ${EXTREMES.length} lines, read back and identical.`;
    expect(await restore(database.store, file)).toBe(end);
    expect(await saved(database)).toBe(text(EXTREMES));
    // What the table rejects is not skipped like a row that is there.
    expect(() => add(database, LINE(9).replace("Tom", " "))).toThrow("CHECK constraint failed");
  });

  it("name the columns of a store that are not those that they cover", async () => {
    const newer = await openDatabase();
    newer.sqlite.exec("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    const covered = "pets.id, pets.name, pets.category_id, pets.status, pets.idempotency_key";
    const message = (stored: string) => `staging has the columns ${stored}, but this version covers ${covered}.
If columns are missing, run: npx wrangler d1 migrations apply DB --env staging --remote\nIf there are more, add them to`;
    await expect(openDatabase(() => {})).rejects.toThrow(message("(none)"));
    await expect(newer.openAgain()).rejects.toThrow(message(`${covered}, pets.toy_id, toys.id`));
  });

  it.each([
    ["Chinese", "猫".repeat(60)],
    ["emoji", "😀".repeat(1_000)],
  ])("read no page in vain if names are similar: %s", async (_, name) => {
    const database = await openDatabase();
    const rows = Math.ceil(3_000_000 / Buffer.byteLength(name));
    addMany(database, rows, "?", name);
    expect((await saved(database)).split("\n").length).toBe(rows + 1);
    const pages = database.queries.filter(({ sql }) => sql.includes("group_concat"));
    expect(pages.length).toBeLessThan(20);
    for (const { sql, output } of pages) {
      expect(output).toContain(name);
      // Nor does it sort, or read more than it has.
      const plan = database.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      expect(plan.map(({ detail }) => String(detail)).join()).not.toMatch(/SCAN pets|TEMP B-TREE/);
    }
  });

  it("read smaller pages if names suddenly get longer, while callers add animals", async () => {
    const database = await openDatabase();
    addMany(database, 1600, "iif(id <= 1000, 'Rex', ?)", "x".repeat(4_000));
    database.onQuery = () => add(database, LINE(++id));
    let id = 2_000;
    expect((await saved(database)).split("\n").length).toBe(1601 + 1);
  });

  it("fail if animals are removed meanwhile, or if one is too large for D1, which only SQL can have added", async () => {
    const database = await openDatabase();
    addMany(database, 400, "iif(id <> 370, 'Rex', ?)", '"'.repeat(1_100_000));
    await expect(saved(database)).rejects.toThrow("The animal after id 369 is too large to be read.");
    const queries = database.queries.length;
    database.onQuery = () => database.queries.length > queries + 1 && database.sqlite.exec("DELETE FROM pets");
    await expect(saved(database)).rejects.toThrow("Something else has removed animals meanwhile.");
    expect(readdirSync(folder)).not.toContain(`${files}.jsonl`);
  });
});

it("every store is saved, and restored identically unless it has lines that a restore names", async () => {
  const [source, target] = [await openDatabase(), await openDatabase()];
  const int64 = fc.bigInt(BigInt(MIN), BigInt(MAX));
  const unit = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
  const long = fc.tuple(unit, fc.nat(2_000)).map(([character, count]) => character.repeat(count));
  const row = fc.record(
    {
      id: fc.oneof(int64, fc.bigInt(-2n, 99n), fc.constantFrom(2n ** 62n, 2n ** 62n + 1n)),
      name: fc.oneof(fc.string({ unit: "binary" }), long).filter((name) => name.trim() !== ""),
      categoryId: int64,
      status: fc.constantFrom("available", "pending", "sold"),
      idempotencyKey: fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 255 }),
    },
    { requiredKeys: ["id", "name", "categoryId", "status"] },
  );
  const rows = fc.uniqueArray(row, {
    minLength: 1,
    maxLength: 6,
    comparator: (a, b) => a.id === b.id || (a.idempotencyKey ?? a) === b.idempotencyKey,
  });
  const property = fc.asyncProperty(rows, async (generated) => {
    for (const { sqlite } of [source, target]) sqlite.exec("DELETE FROM pets");
    const stored = generated.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const lines = stored.map((pet) => printJson(pet));
    add(source, ...lines);
    const file = newFile();
    expect(await backup(source.store, file)).toBe(`Saved staging in ${file}: ${lines.length} lines.`);
    expect(readFileSync(file, "utf8")).toBe(text(lines));
    const isValid = ({ id }: { id: bigint }, index: number) =>
      id >= 1n && id <= 2n ** 62n && Buffer.byteLength(lines[index] ?? "") <= LINE_BYTES;
    const end = await restore(target.store, file).catch(({ message }: Error) => message);
    for (const [index, pet] of stored.entries()) expect(end.includes(`line ${index + 1}: `)).toBe(!isValid(pet, index));
    expect(await saved(target)).toBe(stored.every(isValid) ? text(lines) : "");
  });
  await fc.assert(property, { numRuns: 40 });
});

it("every property that a pet can have is kept", async () => {
  const { example } = described("listPets").responses[200]?.content?.["application/json"] ?? {};
  const lines = (example as object[]).map((pet, index) => JSON.stringify({ ...pet, idempotencyKey: `key ${index}` }));
  const database = await openDatabase();
  await restore(database.store, fileOf(lines));
  expect(await saved(database)).toBe(text(lines));
});

describe("restore", () => {
  // What of an import D1 applies, and how it fails.
  it.each<[string, (sql: string) => string[], Error?]>([
    ["fails before it changes anything", () => [], RESET],
    ["fails after it stored some of its rows", (sql) => [sql.slice(0, sql.lastIndexOf("INSERT"))], RESET],
    ["fails after it stored everything", (sql) => [sql], failure("Network connection lost.")],
    ["is applied twice", (sql) => (sql.includes("DELETE") ? [sql] : [sql, sql])],
  ])("stores everything once if every second import %s", async (_, applied, thrown) => {
    for (const replace of [false, true]) {
      const { database, file } = await setUp(replace ? OLD : []);
      database.onLoad = (apply, sql) => {
        if (database.loads.length % 2 === 0) return apply(sql);
        applied(sql).forEach(apply);
        if (thrown) throw thrown;
      };
      await restore(database.store, file, replace, PART);
      expect(database.loads.length).toBeGreaterThan(7);
      // D1 does not run the same file twice.
      expect(new Set(database.loads).size).toBe(database.loads.length);
      expect(await saved(database)).toBe(text(LINES));
    }
  });

  it.each([false, true])("continues if interrupted; two at once lose nothing (--replace: %s)", async (replace) => {
    for (let kill = 1, isReached = true; isReached; kill++) {
      const { database, file, copies } = await setUp(replace ? OLD : []);
      const stores = [database.store, await database.openAgain()];
      let commands = 0;
      database.onCommand = () => (++commands === kill ? expect.fail("killed") : undefined);
      await Promise.allSettled(stores.map((store) => restore(store, file, replace, PART)));
      isReached = commands >= kill;
      database.onCommand = () => {};
      await restore(database.store, file, replace, PART);
      expect(await saved(database)).toBe(text(LINES));
      if (replace) expect(copies()).toContain(text(OLD));
    }
  });

  it("tries each command five times, unless that cannot help", async () => {
    const database = await openDatabase();
    let attempts = 0;
    database.onQuery = () => {
      // Each query succeeds at the last attempt.
      if (++attempts % 5) throw failure("fetch failed");
    };
    database.onLoad = () => {
      throw RESET;
    };
    await expect(restore(database.store, fileOf(LINES))).rejects.toBe(RESET);
    expect([database.loads.length, attempts]).toEqual([5, 5]);
    database.onQuery = () => {
      database.onQuery = () => expect.fail("tried again");
      throw failure("set a CLOUDFLARE_API_TOKEN environment variable");
    };
    await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("Run npx wrangler login");
  });

  it("keeps each import and each statement within the limits of D1, whatever the names", async () => {
    const database = await openDatabase();
    const names = ["'".repeat(4_000), "BEGIN TRANSACTION".repeat(235), "\\u0001".repeat(660), "a"];
    const lines = Array.from({ length: 1200 }, (_, index) => `{"name":"${names[index % 4]}","categoryId":1}`);
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBeGreaterThan(1);
    for (const sql of database.loads) expect(Buffer.byteLength(sql)).toBeLessThan(2_600_000);
  });

  it("changes nothing in a store that is not the beginning of the file", async () => {
    for (const [lines, line] of [[[LINE(1000)], 1] as const, [LINES.with(1, LINE(2)), 2] as const]) {
      const { database, file } = await setUp([...lines]);
      const message = `staging is not empty, and differs from the file at line ${line}.\nA restore fills an empty store`;
      await expect(restore(database.store, file)).rejects.toThrow(message);
      expect([printed(), database.loads]).toEqual(["", []]);
    }
  });

  it("says whether there is more than the file, from before or from a caller meanwhile, and what removes it", async () => {
    const { database, file } = await setUp([]);
    database.onLoad = (apply, sql) => apply(sql + insertSql(storedLine(LINE(1000))));
    for (const _ of ["meanwhile", "before"]) {
      expect(await restore(database.store, file)).toBe(
        `Restored staging from ${file}: 30 lines, read back and identical.
staging also has animals with greater ids. To remove these, run the command with --replace.`,
      );
      expect(database.loads.length).toBe(1);
    }
  });

  const CALLER = "INSERT INTO pets (name, category_id, status, id, idempotency_key) VALUES ('Caller', 1, 'sold', ";
  it.each([
    ["an animal that a caller adds meanwhile", `${CALLER}115, NULL)`, 16],
    ["its Idempotency-Key", `${CALLER}1000, 'key 127')`, 28],
    ["a change by SQL", "UPDATE pets SET name = 'x' WHERE id = 7", 7],
  ])("finds at the end what was in the way: %s", async (_, change, line) => {
    const database = await openDatabase();
    database.onLoad = (apply, sql) => {
      apply(sql);
      if (database.loads.length === 3) database.sqlite.exec(change);
    };
    await expect(restore(database.store, fileOf(LINES), false, PART)).rejects.toThrow(
      `Verification failed: staging differs from the file at line ${line}. Something else writes to it.\nTo keep callers out, `,
    );
  });
});

describe("restore --replace", () => {
  it("saves what is there next to the file, says how to go back, and only then replaces it", async () => {
    const { database, file, copies } = await setUp(OLD);
    database.onLoad = (apply, sql) => {
      expect(copies()).toEqual([text(OLD)]);
      expect(printed()).toMatch(
        /^Saved staging in .+before-staging-.+: 5 lines\.\nCallers get 503.+\nnpx .+ time-travel restore .+ --env staging --bookmark 0/,
      );
      apply(sql);
    };
    await restore(database.store, file, true);
    expect(await saved(database)).toBe(text(LINES));
    expect(database.loads.length).toBe(2);
    // Again, there is nothing to do, until the store has more than the file.
    database.onLoad = (apply, sql) => apply(sql);
    await restore(database.store, file, true);
    expect(database.loads.length).toBe(2);
    add(database, LINE(1000));
    await restore(database.store, file, true);
    expect([await saved(database), copies().length]).toEqual([text(LINES), 2]);
  });

  it("changes nothing if the file is invalid, or if what is there cannot be saved", async () => {
    const { database, file, copies } = await setUp(OLD);
    await expect(restore(database.store, fileOf([LINE(1), "{"]), true)).rejects.toThrow("has invalid lines");
    database.sqlite.exec("UPDATE pets SET name = hex(zeroblob(999990)) WHERE id = 3");
    await expect(restore(database.store, file, true)).rejects.toThrow("The animal after id 2 is too large");
    // A link too, because what is there would be saved next to it, and /dev/stdin is one.
    if (!WINDOWS) symlinkSync(file, `${file}.link`);
    for (const other of WINDOWS ? [folder] : [folder, `${file}.link`, "/dev/stdin"]) {
      const message = `${other} is not a regular file, next to which --replace can save what is there.`;
      await expect(restore(database.store, other, true)).rejects.toThrow(message);
    }
    expect([database.loads, copies()]).toEqual([[], []]);
  });

  it("puts no data into a command line, and stops if a row of 200 KB changes before the removal or with it", async () => {
    const long = `{"id":200,"name":"${"'".repeat(100_000)}~${"'".repeat(100_000)}","categoryId":1,"status":"sold","idempotencyKey":"key 200"}`;
    const { database, file, copies } = await setUp([...OLD, long]);
    database.onCommand = (line) => {
      // Every user of the machine can see it.
      expect(line).not.toMatch(/Rex \d|\bTom\b|key \d/);
      if (line.includes("time-travel")) database.sqlite.exec("UPDATE pets SET name = replace(name, '~', '+')");
    };
    await expect(restore(database.store, file, true)).rejects.toThrow("Something else has written to staging since");
    for (const change of ["name = name || 'x'", "status = 'pending'", "idempotency_key = NULL", "name = 'x'"]) {
      database.onLoad = (apply, sql) => {
        database.sqlite.exec(`UPDATE pets SET ${change} WHERE id = 200`);
        apply(sql);
      };
      await expect(restore(database.store, file, true)).rejects.toThrow("D1_RESET_DO");
    }
    database.onLoad = (apply, sql) => apply(sql);
    await restore(database.store, file, true);
    expect(await saved(database)).toBe(text(LINES));
    expect(copies()[0]).toBe(text([...OLD, long]));
  });

  const callerAdds = ({ sqlite }: Database): unknown =>
    sqlite.exec("INSERT INTO pets (name, category_id, status) VALUES ('Caller', 1, 'sold')");
  const killed = () => expect.fail("killed");
  const removed = (database: Database) => {
    callerAdds(database);
    const removals = database.loads.filter((sql) => sql.includes("DELETE"));
    for (const sql of removals) expect(() => database.sqlite.exec(sql)).toThrow("malformed JSON");
  };
  const replaced = async (database: Database, file: string) => {
    await restore(database.store, file, true);
    callerAdds(database);
    callerAdds(database);
  };
  it.each([
    ["a caller adds an animal", callerAdds],
    ["it is killed", killed],
    ["a removal that was taken for lost is applied after a caller added an animal", removed],
    ["a restore of a different file finishes, and callers add animals up to the same one", replaced],
  ])("loses nothing if, at any moment, %s", async (_, interfere) => {
    for (let moment = 1, isReached = true; isReached; moment++) {
      const [{ database, file, copies }, other] = [await setUp(OLD), await setUp([], LINES.slice(0, 4))];
      let commands = 0;
      let there = "";
      database.onCommand = async () => {
        if (++commands < moment) return;
        database.onCommand = () => {};
        await interfere(database, other.file);
        there = await saved(database);
      };
      await restore(database.store, file, true, PART).catch(() => {});
      database.onCommand = () => {};
      isReached = commands === moment;
      const kept = [await saved(database), ...copies(), ...other.copies()].join("");
      for (const line of [...OLD, ...there.split("\n")]) expect(kept).toContain(line);
      await restore(database.store, file, true, PART);
      expect(await saved(database)).toBe(text(LINES));
    }
  });
});

describe("backup", () => {
  it("neither overwrites nor follows anything", async () => {
    const database = await openDatabase();
    const { store } = database;
    const [file, link, late] = [fileOf(["kept"]), newFile(), newFile()];
    // On Windows only an administrator can make one.
    if (!WINDOWS) symlinkSync(join(folder, "nowhere"), link);
    for (const taken of WINDOWS ? [file, folder] : [file, link, folder]) {
      await expect(backup(store, taken)).rejects.toThrow(
        `${taken} already exists, and a backup never overwrites anything.`,
      );
    }
    expect(readFileSync(file, "utf8")).toBe("kept\n");
    expect(readdirSync(folder)).not.toContain("nowhere");
    await expect(backup(store, join(folder, "nowhere/pets.jsonl"))).rejects.toThrow(/^ENOENT: .*nowhere'$/);
    // Nor what appears meanwhile.
    database.onQuery = () => writeFileSync(late, "kept");
    await expect(backup(store, late)).rejects.toThrow(/^EEXIST: /);
    expect(readFileSync(late, "utf8")).toBe("kept");
  });
});
