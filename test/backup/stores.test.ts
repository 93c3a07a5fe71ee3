// Backup and restore of stores: what is kept, what a failed import leaves, and what is refused.

import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { COVERED_COLUMNS, insertSql } from "../../scripts/backup/lines.ts";
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

function fileOf(lines: string[]): string {
  const file = newFile();
  writeFileSync(file, text(lines));
  return file;
}

const text = (lines: string[]) => lines.map((line) => `${line}\n`).join("");

/** Adds animals as another program would. */
const add = ({ sqlite }: Database, ...lines: string[]) => sqlite.exec([...insertSql(lines)].join(""));

/** Adds animals with the ids from 1 on. `name`: SQL. */
const addMany = ({ sqlite }: Database, count: number, name: string) =>
  sqlite.exec(`WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
    INSERT INTO pets (id, name, category_id, status) SELECT id, ${name}, 1, 'sold' FROM ids`);

/** What the store holds, by a backup. */
async function saved({ store }: Database): Promise<string> {
  const file = newFile();
  await backup(store, file);
  return readFileSync(file, "utf8");
}

const RESET = failure('{"D1_RESET_DO":true}');
const [MIN, MAX, MAX_ID] = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 62n];

/** With every property, a gap in the ids, keys and callers. A statement stores four of them. */
const { example } = described("listPets").responses[200]?.content?.["application/json"] ?? {};
const LINES = Array.from({ length: 30 }, (_, index) => {
  const id = index < 15 ? index + 1 : index + 100;
  const key = index % 3 ? {} : { idempotencyKey: `key ${id}`, createdBy: "API_KEY_SHOP", createdAt: 1_800_000_000 };
  return JSON.stringify({ ...(example as object[])[0], id, name: `Rex ${"😀".repeat(990)}`, ...key });
});
/** Characters of lines for two statements. */
const PART = 15_000;
const LINE = (id: number) => `{"id":${id},"name":"Tom","categoryId":1,"status":"sold"}`;

describe("backup and restore", () => {
  it("keep whatever callers can store, exactly", async () => {
    const database = await openDatabase();
    const difficult = fc.constantFrom(..."'\"\\;-/*\u0000\u001f\t\r\n\u007f\u0085\u2028\ufeff\uffff😀");
    const any = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
    const row = fc.record({
      name: fc.string({ unit: fc.oneof(difficult, any) }),
      categoryId: fc.oneof(fc.constantFrom(MIN, MAX, 2n ** 53n + 1n), fc.bigInt(MIN, MAX)),
      status: fc.constantFrom("available", "pending", "sold"),
      key: fc.option(fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 250 }), { nil: undefined }),
      createdBy: fc.constantFrom("API_KEY", "API_KEY_ROOM_101"),
      createdAt: fc.option(fc.bigInt(MIN, MAX), { nil: undefined }),
    });
    const property = fc.asyncProperty(fc.array(row, { minLength: 1 }), async (rows) => {
      const lines = rows.map(({ name, categoryId, status, key, ...creation }, index) => {
        // The last one has the greatest id.
        const id = MAX_ID - BigInt(rows.length - 1 - index);
        return printJson({
          id,
          name: `${name}x`,
          categoryId,
          status,
          idempotencyKey: key && `${index} ${key}`,
          ...creation,
        });
      });
      database.sqlite.exec("DELETE FROM pets");
      await restore(database.store, fileOf(lines));
      expect(await saved(database)).toBe(text(lines));
    });
    await fc.assert(property, { numRuns: 40 });
  });

  it("name the columns of a store that are not those that they cover", async () => {
    const database = await openDatabase();
    const covered = COVERED_COLUMNS.map((column) => `pets.${column}`).join(", ");
    const message = (stored: string) => `staging has the columns ${stored}, but this version covers ${covered}.
If columns are missing, run: npx wrangler d1 migrations apply DB --env staging --remote
If there are more, run this from a commit`;
    database.sqlite.exec("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    await expect(database.openAgain()).rejects.toThrow(message(`${covered}, pets.toy_id, toys.id`));
    database.sqlite.exec("DROP TABLE pets; DROP TABLE toys");
    await expect(database.openAgain()).rejects.toThrow(message("(none)"));
  });
});

describe("restore", () => {
  it("stores everything once if every second import fails after it stored some of its rows", async () => {
    const database = await openDatabase();
    database.onLoad = (apply, sql) => {
      if (database.loads.length % 2 === 0) return apply(sql);
      apply(sql.slice(0, sql.lastIndexOf("INSERT")));
      throw RESET;
    };
    await restore(database.store, fileOf(LINES), PART);
    // D1 does not run the same file twice.
    expect(new Set(database.loads).size).toBe(8);
    expect(await saved(database)).toBe(text(LINES));
  });

  it("continues if it was killed at any moment, beside a different one or after it", async () => {
    for (let kill = 1, isReached = true; isReached; kill++) {
      const database = await openDatabase();
      const stores = [database.store, await database.openAgain()];
      const file = fileOf(LINES);
      let commands = 0;
      database.onCommand = () => ++commands === kill && expect.fail("killed");
      await Promise.allSettled(stores.map((store) => restore(store, file, PART)));
      isReached = commands >= kill;
      database.onCommand = () => {};
      await restore(database.store, file, PART);
      expect(await saved(database)).toBe(text(LINES));
    }
  });

  it("loads only the lines that the store does not have", async () => {
    const database = await openDatabase();
    add(database, ...LINES.slice(0, 20));
    await restore(database.store, fileOf(LINES));
    expect(database.loads.join().match(/"id":/g)?.length).toBe(10);
  });

  it("tries each command five times, unless that cannot help", async () => {
    const database = await openDatabase();
    let attempts = 0;
    database.onCommand = () => {
      if (++attempts % 5) throw failure("fetch failed");
    };
    await restore(database.store, fileOf(LINES));
    for (const [message, tries] of Object.entries({ "fetch failed": 5, "set a CLOUDFLARE_API_TOKEN": 1 })) {
      attempts = 0;
      database.onCommand = () => {
        // The second query, for a page, fails.
        if (++attempts > 1) throw failure(message);
      };
      await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("wrangler d1 execute failed");
      expect(attempts).toBe(1 + tries);
    }
  });

  it("keeps imports and statements large, but within the limits of D1", async () => {
    const database = await openDatabase();
    const names = ["猫", "'", "\\u0001", "😀"].map((character) => character.repeat(1_000));
    const lines = names.flatMap((name) => Array<string>(200).fill(`{"name":"${name}","categoryId":1}`));
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBe(2);
    for (const sql of database.loads) {
      expect(Buffer.byteLength(sql)).toBeLessThan(5_000_000);
      expect(sql.split("INSERT").length).toBeLessThan(sql.length / 5_000);
    }
  });

  const CLOSE = '"Close the service" in docs/OPERATIONS.md: npx wrangler secret put MAINTENANCE --env staging';
  it.each([
    ["is open", [["API_KEY"]]],
    ["is open to some callers", [["API_KEY", "MAINTENANCE"], ["API_KEY"]]],
    ["does not exist", undefined],
  ])("writes nothing to an environment whose service %s, and says how to close it", async (_, serving) => {
    const database = await openDatabase();
    database.serving = serving;
    await expect(restore(database.store, fileOf(LINES))).rejects.toThrow(CLOSE);
    expect([printed(), database.loads]).toEqual(["", []]);
    // What has nothing to write needs no closing.
    add(database, ...LINES);
    expect(await restore(database.store, fileOf(LINES))).toContain("Restored staging");
  });

  it("does not verify anything if the service was opened meanwhile", async () => {
    const [database, file] = [await openDatabase(), fileOf(LINES)];
    database.onLoad = (apply, sql) => {
      apply(sql);
      database.serving = [["API_KEY"]];
    };
    await expect(restore(database.store, file)).rejects.toThrow(CLOSE);
    database.serving = [["MAINTENANCE"]];
    expect(await restore(database.store, file)).toContain("Restored staging");
  });

  it("writes to the local store at any time", async () => {
    const database = await openDatabase();
    database.serving = undefined;
    expect(await restore({ ...database.store, isLocal: true }, fileOf(LINES))).toContain("Restored staging");
    expect(printed()).toBe("");
  });

  it.each([
    [false, 'see "Replace a store" in docs/OPERATIONS.md.'],
    [true, "stop npm run dev, remove .wrangler/state, and run the same command again."],
  ])("changes nothing in a different store, and says what to do (local: %j)", async (isLocal, how) => {
    const database = await openDatabase();
    add(database, ...LINES.with(1, LINE(2)));
    await expect(restore({ ...database.store, isLocal }, fileOf(LINES))).rejects.toThrow(
      RegExp(`^staging is not empty, and differs from the file at line 2\\.[\\s\\S]+${how}$`),
    );
    expect([printed(), database.loads]).toEqual(["", []]);
  });

  it("says that newer animals stay, and before it starts, how to return", async () => {
    const [database, file] = [await openDatabase(), fileOf(LINES)];
    database.onLoad = (apply, sql) => apply(sql + [...insertSql([LINE(1000)])].join(""));
    for (const _ of ["meanwhile", "before"]) {
      expect(await restore(database.store, file)).toBe(
        `Restored staging from ${file}: 30 lines, read back and identical.
staging also has newer animals, which stay.`,
      );
      expect(database.loads.length).toBe(1);
    }
    expect(printed()).toMatch(/^To return to (.+\n)+.* npx wrangler d1 time-travel restore .+ --bookmark 0{8}-0{7}1$/);
  });

  it("finds at the end an animal that a caller has added meanwhile", async () => {
    const database = await openDatabase();
    database.onLoad = (apply, sql) => {
      apply(sql);
      if (database.loads.length === 1) add(database, LINE(115));
    };
    await expect(restore(database.store, fileOf(LINES), PART)).rejects.toThrow(
      "Verification failed. staging is not empty, and differs from the file at line 16.",
    );
  });
});

describe("backup", () => {
  it.each([
    ["ASCII", "x", 5],
    ["Chinese", "猫", 6],
    ["the longest", "\u0001", 8],
  ])("reads large pages, and none in vain, if names are similar: %s", async (_, character, expected) => {
    const [database, rows] = [await openDatabase(), 1_000];
    addMany(database, rows, `'${character.repeat(1_000)}'`);
    database.sqlite.exec(`UPDATE pets SET created_by = 'API_KEY', idempotency_key = printf('%0255d', id)`);
    let commands = 0;
    database.onCommand = () => ++commands;
    expect((await saved(database)).split("\n").length).toBe(rows + 1);
    expect(commands).toBe(expected);
    // None of them failed, sorted, or read more than it had.
    const reads = database.queries.filter((sql) => sql.includes("FROM pets"));
    expect(reads.length).toBe(commands);
    for (const sql of reads) {
      const plan = database.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      expect(plan.map(({ detail }) => String(detail)).join()).not.toMatch(/SCAN pets|TEMP B-TREE/);
    }
  });

  it("reads smaller pages if names suddenly get longer, while callers add animals", async () => {
    const database = await openDatabase();
    addMany(database, 1600, `iif(id <= 1000, 'Rex', '${"😀".repeat(1_000)}')`);
    database.onCommand = () => add(database, LINE(++id));
    let id = 2_000;
    expect((await saved(database)).split("\n").length).toBe(1601 + 1);
    expect(database.queries.length).toBeLessThan(20);
  });

  it("keeps what only SQL can have stored", async () => {
    const database = await openDatabase();
    add(database, LINE(-5), LINE(1));
    expect(await saved(database)).toBe(text([LINE(-5), LINE(1)]));
  });

  it.each([
    ["iif(id = 1, 'Old', 'New')", 700],
    ["iif(id = 400, 'Old', 'New')", 700],
    ["'Old'", 1],
  ])("is of one store, or fails, if at any moment the names become %s, of %i animals", async (name, count) => {
    const failures: string[] = [];
    for (let moment = 1, isReached = true; isReached; moment++) {
      const [database, file] = [await openDatabase(), newFile()];
      addMany(database, 400, "'Old'");
      const before = await saved(database);
      let commands = 0;
      database.onCommand = () => {
        if (++commands !== moment) return;
        database.sqlite.exec("DELETE FROM pets");
        addMany(database, count, name);
      };
      const end = await backup(database.store, file).catch((thrown: Error) => thrown.message);
      isReached = commands >= moment;
      if (end.startsWith("Saved")) {
        expect([before, await saved(database)]).toContain(readFileSync(file, "utf8"));
      } else {
        failures.push(end);
        expect(existsSync(file)).toBe(false);
      }
    }
    const message = "Something else has changed or removed animals of staging meanwhile.\nRun the same command again.";
    expect(failures).toEqual([message, message, message]);
  });

  it("neither overwrites nor follows anything", async () => {
    const database = await openDatabase();
    const [file, link, target] = [fileOf(["kept"]), newFile(), newFile()];
    await expect(backup(database.store, file)).rejects.toThrow("already exists, and is never overwritten.");
    // On Windows only an administrator can make one.
    if (!WINDOWS) {
      symlinkSync(target, link);
      await expect(backup(database.store, link)).rejects.toThrow(/^EEXIST: /);
    }
    expect(readFileSync(file, "utf8")).toBe("kept\n");
    expect(existsSync(target)).toBe(false);
  });
});
