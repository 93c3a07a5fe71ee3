// Backup and restore between stores: what is kept, what a failed import leaves, and what is rejected.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { insertSql, storedLine } from "../../scripts/backup/lines.ts";
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

const remove = (name: string) => rmSync(join(folder, name));

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

/** Lets SQL store what the table rejects: a store of an earlier commit may lack a CHECK. */
const allowAll = ({ sqlite }: Database) => sqlite.exec("PRAGMA ignore_check_constraints = 1");

const RESET = failure('{"D1_RESET_DO":true}');
const MIN = "-9223372036854775808";
const MAX = "9223372036854775807";

/** The longest row that callers can store. */
const LONGEST = (id: string) => {
  const [name, key] = ["\\u0001".repeat(1000), "\\\\".repeat(255)];
  return `{"id":${id},"name":"${name}","categoryId":${MIN},"status":"available","idempotencyKey":"${key}"}`;
};

/** Each as SQLite prints it. */
const EXTREMES = [
  `{"id":1,"name":"least","categoryId":${MIN},"status":"available"}`,
  `{"id":2,"name":"${"'".repeat(1_000)}","categoryId":-1,"status":"pending"}`,
  `{"id":3,"name":"${"x".repeat(1_000)}","categoryId":0,"status":"sold","idempotencyKey":"'"}`,
  `{"id":4,"name":"a\\u0000b\\u0000","categoryId":1,"status":"sold","idempotencyKey":"${"~".repeat(255)}"}`,
  `{"id":5,"name":"\u2028;\u2029; -- \u0085\u007f\\r\\n\\t\\"'\\\\","categoryId":1,"status":"sold"}`,
  `{"id":6,"name":"BEGIN TRANSACTION; COMMIT;","categoryId":1,"status":"sold","idempotencyKey":"BEGIN TRANSACTION;"}`,
  `{"id":7,"name":"${" ".repeat(999)}\\u0000","categoryId":1,"status":"sold","idempotencyKey":"\\"a,\\\\ b\\""}`,
  `{"id":8,"name":"${"😀".repeat(999)}\ufeff","categoryId":9007199254740993,"status":"available"}`,
  `{"id":9007199254740993,"name":"\\u0000","categoryId":1,"status":"available"}`,
  LONGEST("9223372036854775806"),
  `{"id":${MAX},"name":"greatest","categoryId":${MAX},"status":"available"}`,
];
const WARNING = `
Warning: the last id is ${MAX}. After ${MAX}, SQLite assigns ids at random. Give this animal a smaller id:
"One wrong animal" in docs/OPERATIONS.md.`;

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
    const [end, copy] = [`${EXTREMES.length} lines, read back and identical.${WARNING}`, newFile()];
    expect(await restore(database.store, file)).toBe(`Restored staging from ${file}: ${end}`);
    expect(await backup(database.store, copy)).toBe(`Saved staging in ${copy}: ${EXTREMES.length} lines.${WARNING}`);
    expect(readFileSync(copy, "utf8")).toBe(text(EXTREMES));
    // What the table rejects is not skipped like a row that is there.
    expect(() => add(database, LINE(9).replace("Tom", " "))).toThrow("CHECK constraint failed");
  });

  it("warn if fewer than 2^32 ids remain", async () => {
    for (const [id, isWarned] of [["9223372032559808512", false] as const, ["9223372032559808513", true] as const]) {
      const [database, file] = [await openDatabase(), fileOf([LINE(1).replace("1", id)])];
      for (const end of [await restore(database.store, file), await backup(database.store, newFile())])
        expect(end.includes(`\nWarning: the last id is ${id}.`)).toBe(isWarned);
    }
  });

  it("name the columns of a store that are not those that they cover", async () => {
    const newer = await openDatabase();
    newer.sqlite.exec("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    const covered = "pets.id, pets.name, pets.category_id, pets.status, pets.idempotency_key";
    const message = (stored: string) => `staging has the columns ${stored}, but this version covers ${covered}.
If columns are missing, run: npx wrangler d1 migrations apply DB --env staging --remote
If there are more, add them to`;
    await expect(openDatabase(() => {})).rejects.toThrow(message("(none)"));
    await expect(newer.openAgain()).rejects.toThrow(message(`${covered}, pets.toy_id, toys.id`));
  });

  it.each([
    ["Chinese", "猫".repeat(60)],
    ["emoji", "😀".repeat(1_000)],
    ["the longest", "\u0001".repeat(1_000)],
  ])("read no page in vain if names are similar: %s", async (_, name) => {
    const database = await openDatabase();
    const json = JSON.stringify(name);
    const rows = Math.ceil(3_000_000 / Buffer.byteLength(json));
    addMany(database, rows, "?", name);
    database.sqlite.exec(`UPDATE pets SET idempotency_key = printf('%0255d', id)`);
    expect((await saved(database)).split("\n").length).toBe(rows + 1);
    const pages = database.queries.filter(({ sql }) => sql.includes("group_concat"));
    expect(pages.length).toBeLessThan(20);
    for (const { output } of pages) expect(output).toContain(json.slice(1, -1).replaceAll("\\", "\\\\"));
    for (const { sql } of database.queries.filter(({ sql }) => sql.includes("FROM pets"))) {
      // Nor does it sort, or read more than it has.
      const plan = database.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      expect(plan.map(({ detail }) => String(detail)).join()).not.toMatch(/SCAN pets|TEMP B-TREE/);
    }
  });

  it("read smaller pages if names suddenly get longer, while callers add animals", async () => {
    const database = await openDatabase();
    addMany(database, 1600, "iif(id <= 1000, 'Rex', ?)", "😀".repeat(1_000));
    database.onQuery = () => add(database, LINE(++id));
    let id = 2_000;
    expect((await saved(database)).split("\n").length).toBe(1601 + 1);
  });

  it("fail if a row is too large for D1, which only SQL can have stored", async () => {
    const database = await openDatabase();
    allowAll(database);
    addMany(database, 400, "iif(id < 400, 'Rex', ?)", '"'.repeat(1_100_000));
    const message = `The animal after id 399 is too large to be read, and only SQL can have stored it.
Shorten its name: "One wrong animal" in docs/OPERATIONS.md.`;
    await expect(saved(database)).rejects.toThrow(message);
    expect(readdirSync(folder)).not.toContain(`${files}.jsonl`);
  });
});

it("every store is saved, and restored identically unless it has lines that a restore names", async () => {
  const [source, target] = [await openDatabase(), await openDatabase()];
  allowAll(source);
  const int64 = fc.bigInt(BigInt(MIN), BigInt(MAX));
  const unit = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
  const long = fc.tuple(unit, fc.nat(2_000)).map(([character, count]) => character.repeat(count));
  const row = fc.record(
    {
      id: fc.oneof(int64, fc.bigInt(-2n, 99n), fc.constantFrom(BigInt(MIN), BigInt(MAX))),
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
    const report = await backup(source.store, file);
    expect(report).toContain(`Saved staging in ${file}: ${lines.length} lines.`);
    expect(readFileSync(file, "utf8")).toBe(text(lines));
    const isValid = ({ id, name }: { id: bigint; name: string }) => id >= 1n && [...name].length <= 1_000;
    const end = await restore(target.store, file).catch(({ message }: Error) => message);
    for (const [index, pet] of stored.entries()) {
      expect(report.includes(`\nid ${pet.id}: `)).toBe(!isValid(pet));
      expect(end.includes(`\nline ${index + 1}: `)).toBe(!isValid(pet));
    }
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
    const names = ["'".repeat(1_000), "BEGIN TRANSACTION".repeat(58), "\\u0001".repeat(1_000), "a"];
    const lines = Array.from({ length: 1200 }, (_, index) => `{"name":"${names[index % 4]}","categoryId":1}`);
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBeGreaterThan(1);
    for (const sql of database.loads) expect(Buffer.byteLength(sql)).toBeLessThan(2_600_000);
  });

  it("changes nothing in a store that is not the beginning of the file", async () => {
    for (const [lines, line] of [[[LINE(1000)], 1] as const, [LINES.with(1, LINE(2)), 2] as const]) {
      const { database, file } = await setUp([...lines]);
      const message = `staging is not empty, and differs from the file at line ${line}.
A restore fills an empty store, or continues one that did not finish.\nWith --replace, it saves what is there`;
      await expect(restore(database.store, file)).rejects.toThrow(message);
      expect([printed(), database.loads]).toEqual(["", []]);
    }
  });

  it("says whether there is more than the file, from before or from a caller, and what removes it", async () => {
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
      `Verification failed: staging differs from the file at line ${line}.\nSomething else writes to it. Keep it out`,
    );
  });
});

describe("restore --replace", () => {
  it("saves what is there next to the file, says how to go back, and only then replaces it", async () => {
    const { database, file, copies } = await setUp(OLD);
    database.onLoad = (apply, sql) => {
      expect(copies()).toEqual([text(OLD)]);
      expect(printed()).toMatch(
        /^Saved staging in .+before-staging-.+: 5 lines\.\nCallers get 503(.+\n)+npx .+ time-travel restore .+ 0{8}-/,
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

  it("works only while the service is closed", async () => {
    const { database, file, copies } = await setUp(OLD);
    database.secrets = ["API_KEY"];
    await expect(restore(database.store, file, true)).rejects.toThrow(
      `--replace works only while staging is closed ("Close the service" in docs/OPERATIONS.md).
To close it, run this command, and press Enter: npx wrangler secret put MAINTENANCE --env staging`,
    );
    expect([database.loads, database.queries.length, copies()]).toEqual([[], 1, []]);
  });

  it("removes nothing that a restore would reject, which only SQL can have stored, and names it", async () => {
    const lines = [
      LINE(-5),
      LINE(0),
      LINE(1),
      // Up to U+0000, the table finds nothing wrong.
      LINE(2).replace("Tom", "\\u0000".padEnd(1_500, "x")),
      LINE(3).replace("}", ',"idempotencyKey":"k\\u0000\\n"}'),
    ];
    const { database, file, copies } = await setUp(lines);
    const name = "a string of at most 1000 characters, at least one of which is not white space";
    const named = `5 lines.
A restore rejects some of them, which only SQL can have stored. The first ones are:
id -5: id must be positive
id 0: id must be positive
id 2: name must be ${name}
id 3: idempotencyKey must be a string of 1 to 255 printable ASCII characters
Correct them: "One wrong animal" in docs/OPERATIONS.md.`;
    expect(await backup(database.store, newFile())).toMatch(RegExp(`^Saved staging in .+: ${named}$`));
    await expect(restore(database.store, file, true)).rejects.toThrow(
      RegExp(`^Nothing was removed, because it could not be restored.\nSaved staging in .+: ${named}$`),
    );
    expect([database.loads, copies()]).toEqual([[], [text(lines)]]);
    database.sqlite.exec("UPDATE pets SET id = 9 - id, name = 'Tom', idempotency_key = NULL WHERE id <> 1");
    await restore(database.store, file, true);
    expect(await saved(database)).toBe(text(LINES));
  });

  it("changes nothing if the file is invalid or is not a regular file", async () => {
    const { database, file, copies } = await setUp(OLD);
    await expect(restore(database.store, fileOf([LINE(1), "{"]), true)).rejects.toThrow("has invalid lines");
    // A link too, because what is there would be saved next to it, and /dev/stdin is one.
    if (!WINDOWS) symlinkSync(file, `${file}.link`);
    for (const other of WINDOWS ? [folder] : [folder, `${file}.link`, "/dev/stdin"]) {
      const message = `${other} is not a regular file, next to which --replace can save what is there.`;
      await expect(restore(database.store, other, true)).rejects.toThrow(message);
    }
    expect([database.loads, copies()]).toEqual([[], []]);
  });

  it("puts no data into a command line, and stops if a row changes before the removal or with it", async () => {
    const old = [LONGEST("1"), ...OLD.slice(1), LONGEST("200").replaceAll("\\\\", "~")];
    const { database, file, copies } = await setUp(old);
    database.onCommand = (line) => {
      // Every user of the machine can see it.
      expect(line).not.toMatch(/Rex \d|\bTom\b|key \d/);
      if (line.includes("time-travel")) database.sqlite.exec("UPDATE pets SET category_id = 1 WHERE id = 1");
    };
    await expect(restore(database.store, file, true)).rejects.toThrow(
      "Something else has written to staging since it was saved, and nothing was removed.\nRun the same command again",
    );
    for (const change of ["category_id = 2", "status = 'pending'", "idempotency_key = NULL", "name = 'x'"]) {
      database.onLoad = (apply, sql) => {
        database.sqlite.exec(`UPDATE pets SET ${change} WHERE id = 200`);
        apply(sql);
      };
      await expect(restore(database.store, file, true)).rejects.toThrow("D1_RESET_DO");
    }
    database.onLoad = (apply, sql) => apply(sql);
    await restore(database.store, file, true);
    expect(await saved(database)).toBe(text(LINES));
    expect(copies()[0]).toBe(text(old));
  });

  /** What happens before a command. Returns copies of what it removed. */
  type Interference = (database: Database) => string[] | Promise<string[]>;

  const callerAdds = ({ sqlite }: Database): string[] => {
    sqlite.exec("INSERT INTO pets (name, category_id, status) VALUES ('Caller', 1, 'sold')");
    return [];
  };
  const killed = () => expect.fail("killed");
  const removed = (database: Database) => {
    callerAdds(database);
    const removals = database.loads.filter((sql) => sql.includes("DELETE"));
    for (const sql of removals) expect(() => database.sqlite.exec(sql)).toThrow("malformed JSON");
    return [];
  };
  const replaced = async (database: Database) => {
    const other = await setUp([], LINES.slice(0, 4));
    await restore(database.store, other.file, true);
    callerAdds(database);
    callerAdds(database);
    return other.copies();
  };

  /** Expects that nothing is lost if something interferes before the nth command. Returns whether there is one. */
  async function expectNothingLost(nth: number, interfere: Interference): Promise<boolean> {
    const { database, file, copies } = await setUp(OLD);
    const elsewhere: string[] = [];
    let there = "";
    let commands = 0;
    database.onCommand = async () => {
      if (++commands < nth) return;
      database.onCommand = () => {};
      elsewhere.push(...(await interfere(database)));
      there = await saved(database);
    };
    await restore(database.store, file, true, PART).catch(() => {});
    database.onCommand = () => {};
    const kept = [await saved(database), ...copies(), ...elsewhere].join("");
    for (const line of [...OLD, ...there.split("\n")]) expect(kept).toContain(line);
    await restore(database.store, file, true, PART);
    expect(await saved(database)).toBe(text(LINES));
    return commands === nth;
  }

  it.each<[string, Interference]>([
    ["a caller adds an animal", callerAdds],
    ["it is killed", killed],
    ["a removal that was taken for lost is applied after a caller added an animal", removed],
    ["a restore of a different file finishes, and callers add animals up to the same one", replaced],
  ])("loses nothing if, at any moment, %s", async (_, interfere) => {
    let nth = 1;
    while (await expectNothingLost(nth, interfere)) nth++;
    expect(nth).toBeGreaterThan(10);
  });
});

describe("backup", () => {
  it.each(["'New'", "iif(id = 1, 'Old', 'New')", "iif(id = 400, 'Old', 'New')"])(
    "is of one store, or fails, if at any moment the names become %s",
    async (name) => {
      const failures: string[] = [];
      for (let moment = 1, isReached = true; isReached; moment++) {
        const [database, other] = [await openDatabase(), await openDatabase()];
        addMany(database, 400, "?", "Old");
        addMany(other, 700, `iif(true, ${name}, ?)`, "");
        const stores = [await saved(database), await saved(other)];
        let queries = 0;
        database.onQuery = () => {
          if (++queries !== moment) return;
          database.sqlite.exec("DELETE FROM pets");
          addMany(database, 700, `iif(true, ${name}, ?)`, "");
        };
        const file = newFile();
        const message = await backup(database.store, file).then(
          () => "",
          (failure: Error) => failure.message,
        );
        isReached = queries >= moment;
        if (message) failures.push(message);
        if (message) expect(readdirSync(folder)).not.toContain(basename(file));
        else expect(stores).toContain(readFileSync(file, "utf8"));
      }
      const message =
        "Something else has changed or removed animals of staging meanwhile.\nRun the same command again.";
      expect(failures).toEqual([message, message, message]);
    },
  );

  it.skipIf(WINDOWS)(
    "reserves its name with a file that only its owner can read, which SIGKILL can leave",
    async () => {
      const database = await openDatabase();
      // What it has written is gone, so it cannot put it in the place of that file.
      database.onQuery = () =>
        readdirSync(folder)
          .filter((name) => name.endsWith(".partial"))
          .forEach(remove);
      const file = newFile();
      await expect(backup(database.store, file)).rejects.toThrow(/^ENOENT: .* rename /);
      expect([readFileSync(file, "utf8"), statSync(file).mode & 0o777]).toEqual(["", 0o600]);
    },
  );

  it("neither overwrites nor follows anything", async () => {
    const database = await openDatabase();
    const { store } = database;
    const [file, link, late] = [fileOf(["kept"]), newFile(), newFile()];
    // On Windows only an administrator can make one.
    if (!WINDOWS) symlinkSync(join(folder, "nowhere"), link);
    for (const taken of WINDOWS ? [file, folder] : [file, link, folder]) {
      await expect(backup(store, taken)).rejects.toThrow(
        `${taken} already exists, and a backup never overwrites anything. Name a different file.`,
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
