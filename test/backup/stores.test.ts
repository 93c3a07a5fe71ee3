// Backup and restore of stores: what is kept, what a failed import leaves, and what is refused.

import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { restore } from "../../scripts/backup/restore.ts";
import type { NewPet } from "../../src/pets/pet.ts";
import { printJson } from "../../src/values/json.ts";
import { fileOf, linesIn, newFile } from "./files.ts";
import { type Database, failure, openDatabase } from "./sqlite-store.ts";

const print = vi.spyOn(console, "log").mockImplementation(() => {});
beforeEach(() => void print.mockClear());
const printed = () => print.mock.calls.flat().join("\n");

/** What the store holds, by a backup. */
async function saved({ store }: Database): Promise<string[]> {
  const file = newFile();
  await backup(store, file);
  return linesIn(file);
}

const LINE = (id: number) => `{"id":${id},"name":"Tom","categoryId":1,"status":"sold"}`;

/** With a gap in the ids, and keys. A statement stores four of them. */
const LINES = Array.from({ length: 30 }, (_, index) => {
  const id = index < 15 ? index + 1 : index + 100;
  const key = index % 3 ? {} : { idempotencyKey: `key ${id}`, createdBy: "API_KEY_SHOP", createdAt: 1_800_000_000 };
  return JSON.stringify({ id, name: `Rex ${"😀".repeat(990)}`, categoryId: 1, status: "pending", ...key });
});
/** Characters of lines for two statements. */
const PART = 15_000;

describe("backup and restore", () => {
  it("keep whatever callers can store, exactly", async () => {
    const database = await openDatabase();
    const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
    const difficult = fc.constantFrom(..."'\"\\;-/*\u0000\u001f\t\r\n\u007f\u0085\u2028\ufeff\uffff😀");
    const any = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
    const properties = {
      name: fc.string({ unit: fc.oneof(difficult, any) }),
      categoryId: fc.oneof(fc.constantFrom(int64.min, int64.max, 2n ** 53n + 1n), fc.bigInt(int64)),
      status: fc.constantFrom("available", "pending", "sold"),
      idempotencyKey: fc.option(fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 250 }), {
        nil: undefined,
      }),
      createdBy: fc.constantFrom("API_KEY", "API_KEY_ROOM_101"),
      createdAt: fc.option(fc.bigInt(int64), { nil: undefined }),
    } satisfies Record<keyof NewPet, unknown> & Record<string, unknown>;
    const row = fc.record(properties);
    const property = fc.asyncProperty(fc.array(row, { minLength: 1 }), async (rows) => {
      const lines = rows.map((row, index) => {
        // The last one has the greatest id.
        const id = 2n ** 62n - BigInt(rows.length - 1 - index);
        const [name, key] = [`${row.name}x`, row.idempotencyKey && `${index} ${row.idempotencyKey}`];
        return printJson({ id, ...row, name, idempotencyKey: key });
      });
      database.sqlite.exec("DELETE FROM pets");
      await restore(database.store, fileOf(lines));
      expect(await saved(database)).toEqual(lines);
    });
    await fc.assert(property, { numRuns: 40 });
  });

  it("name the columns of a store that are not those that they cover", async () => {
    const database = await openDatabase();
    database.sqlite.exec("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    await expect(database.openAgain()).rejects.toThrow(
      /^staging has the columns (pets\.category_id, .+), pets\.toy_id, toys\.id, but this version covers \1\.\n/,
    );
    database.sqlite.exec("DROP TABLE pets; DROP TABLE toys");
    await expect(database.openAgain()).rejects.toThrow(
      `staging has the columns (none), but this version covers pets.category_id,`,
    );
  });
});

describe("restore", () => {
  it("stores everything once if imports fail half-way, and one of two restores is killed at any moment", async () => {
    const file = fileOf(LINES);
    for (let kill = 1, isReached = true; isReached; kill++) {
      const database = await openDatabase();
      const stores = [database.store, await database.openAgain()];
      let commands = 0;
      database.onCommand = () => ++commands === kill && expect.fail("killed");
      database.onLoad = (apply, sql) => {
        if (database.loads.length % 2 === 0) return apply(sql);
        apply(sql.slice(0, sql.lastIndexOf("INSERT")));
        throw failure('{"D1_RESET_DO":true}');
      };
      await Promise.allSettled(stores.map((store) => restore(store, file, PART)));
      isReached = commands >= kill;
      database.onCommand = () => {};
      await restore(database.store, file, PART);
      expect(await saved(database)).toEqual(LINES);
      // D1 does not run the same file twice.
      expect(new Set(database.loads).size).toBe(database.loads.length);
    }
  });

  it("loads only what is missing, in large parts and statements, within the limits of D1", async () => {
    const database = await openDatabase();
    const names = ["猫", "'", "\\u0001", "😀"].map((character) => character.repeat(1_000));
    const lines = names.flatMap((name) => Array<string>(200).fill(`"name":"${name}","categoryId":1,"status":"sold"}`));
    const file = fileOf(lines.map((line, index) => `{"id":${index + 1},${line}`));
    database.add(...linesIn(file).slice(0, 20));
    await restore(database.store, file);
    expect(database.loads.length).toBe(2);
    expect(database.loads.join().match(/"id":/g)?.length).toBe(780);
    for (const sql of database.loads) {
      expect(Buffer.byteLength(sql)).toBeLessThan(5_000_000);
      expect(sql.split("INSERT").length).toBeLessThan(sql.length / 5_000);
    }
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
        attempts++;
        throw failure(message);
      };
      await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("wrangler d1 execute failed");
      expect(attempts).toBe(tries);
    }
  });

  const CLOSE = `"Close the service" in docs/OPERATIONS.md: npx wrangler secret put MAINTENANCE --env staging
Then run the same command again.`;
  const isOpen = (state: string) =>
    `The service of staging is not closed: callers could add animals with ids of the file. ${state}\n${CLOSE}`;

  it.each([
    ["is open", [["API_KEY"]]],
    ["is open to some callers", [["API_KEY", "MAINTENANCE"], ["API_KEY"]]],
    ["does not exist", undefined],
  ])("writes nothing if the service %s, unless it has nothing to write", async (_, serving) => {
    const [database, file] = [await openDatabase(), fileOf(LINES)];
    database.serving = serving;
    await expect(restore(database.store, file)).rejects.toThrow(isOpen("Nothing was changed."));
    expect([printed(), database.loads]).toEqual(["", []]);
    database.add(...LINES);
    expect(await restore(database.store, file)).toBe(
      `Restored staging from ${file}: 30 lines, read back and identical.`,
    );
    // A local service is the operator's own.
    database.sqlite.exec("DELETE FROM pets");
    expect(await restore({ ...database.store, isLocal: true }, file)).toContain("Restored");
    expect(printed()).toBe("");
  });

  it.each([
    [false, '"Replace a store" in docs/OPERATIONS.md.'],
    [true, "stop npm run dev, remove .wrangler/state, and run the same command again."],
  ])("changes nothing in a different store, and says what to do (local: %j)", async (isLocal, how) => {
    const database = await openDatabase();
    database.add(...LINES.with(1, LINE(2)));
    await expect(
      restore({ ...database.store, isLocal }, fileOf(LINES)),
    ).rejects.toThrow(`staging is not empty, and differs from the file at line 2. Nothing was changed.
A restore fills an empty store, or continues one that is the beginning of the file.
To replace the animals of staging: ${how}`);
    expect([printed(), database.loads]).toEqual(["", []]);
  });

  it("says at first how to go back, and at the end that newer animals stay", async () => {
    const [database, file] = [await openDatabase(), fileOf(LINES)];
    database.onLoad = (apply, sql) => {
      apply(sql);
      database.add(LINE(1000));
    };
    for (const _ of ["meanwhile", "before"]) {
      expect(await restore(database.store, file)).toBe(
        `Restored staging from ${file}: 30 lines, read back and identical.
staging also has newer animals. They stay.`,
      );
    }
    expect(printed()).toMatch(/^The bookmark of staging before this restore: 00000000-00000001\nTo take .+\n.+$/);
  });

  it("finds at the end that an animal was in the way, or the service was opened", async () => {
    const [database, file] = [await openDatabase(), fileOf(LINES)];
    database.onLoad = (apply, sql) => {
      database.add(LINE(115));
      apply(sql);
    };
    await expect(
      restore(database.store, file),
    ).rejects.toThrow(`Verification failed: staging differs from the file at line 16.
Something else has changed one of them. Run the same command again.`);
    database.sqlite.exec("DELETE FROM pets");
    database.onLoad = () => {
      database.serving = [["API_KEY"]];
    };
    await expect(restore(database.store, file)).rejects.toThrow(isOpen("The restore did not finish."));
  });

  it("changes nothing if the file is invalid or empty", async () => {
    const { store, loads } = await openDatabase();
    await expect(restore(store, fileOf([LINE(1), "x"]))).rejects.toThrow("line 2: is not valid JSON in UTF-8");
    await expect(restore(store, fileOf([]))).rejects.toThrow("jsonl is empty. Name a file with at least one animal.");
    expect(loads).toEqual([]);
  });
});

describe("backup", () => {
  it.each([
    ["ASCII", "x", 5],
    ["Chinese", "猫", 6],
    ["the longest", "\u0001", 8],
  ])("reads large pages, and none in vain, if names are similar: %s", async (_, character, expected) => {
    const [database, rows] = [await openDatabase(), 1_000];
    database.addMany(rows, `'${character.repeat(1_000)}'`);
    database.sqlite.exec(`UPDATE pets SET created_by = 'API_KEY', idempotency_key = printf('%0255d', id)`);
    database.queries.length = 0;
    expect((await saved(database)).length).toBe(rows);
    // None of them failed, sorted, or read more than it had.
    expect(database.queries.length).toBe(expected);
    for (const sql of database.queries) {
      const plan = database.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      expect(plan.map(({ detail }) => String(detail)).join()).not.toMatch(/SCAN pets|TEMP B-TREE/);
    }
  });

  it("reads smaller pages if names suddenly get longer, while callers add animals", async () => {
    const database = await openDatabase();
    database.addMany(1600, `iif(id <= 1000, 'Rex', '${"😀".repeat(1_000)}')`);
    // Only SQL can have stored this one.
    database.add(LINE(-5));
    database.onCommand = () => database.add(LINE(++id));
    let id = 2_000;
    const lines = await saved(database);
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([1602, LINE(-5), LINE(2_001)]);
    expect(database.queries.length).toBeLessThan(20);
  });

  it.each([
    ["iif(id = 1, 'Old', 'New')", 700],
    ["iif(id = 400, 'Old', 'New')", 700],
    ["'Old'", 1],
  ])("is of one store, or fails, if at any moment the names become %s, of %i animals", async (name, count) => {
    const failures: string[] = [];
    for (let moment = 1, isReached = true; isReached; moment++) {
      const [database, file] = [await openDatabase(), newFile()];
      database.addMany(400, "'Old'");
      const before = await saved(database);
      let commands = 0;
      database.onCommand = () => {
        if (++commands !== moment) return;
        database.sqlite.exec("DELETE FROM pets");
        database.addMany(count, name);
      };
      const end = await backup(database.store, file).catch((thrown: Error) => thrown.message);
      isReached = commands >= moment;
      if (end.startsWith("Saved")) {
        expect([before, await saved(database)]).toContainEqual(linesIn(file));
      } else {
        failures.push(end);
        expect(existsSync(file)).toBe(false);
      }
    }
    const message = "Something else has changed or removed animals of staging meanwhile.\nRun the same command again.";
    expect(failures).toEqual([message, message, message]);
  });

  it("neither overwrites nor follows anything, not even what appears meanwhile", async () => {
    const database = await openDatabase();
    const [file, link, target] = [newFile(), newFile(), newFile()];
    database.onCommand = () => writeFileSync(file, "kept\n");
    await expect(backup(database.store, file)).rejects.toThrow("EEXIST: file already exists");
    await expect(backup(database.store, file)).rejects.toThrow(
      `${file} already exists, and nothing is ever overwritten.`,
    );
    expect(linesIn(file)).toEqual(["kept"]);
    // On Windows only an administrator can make a link.
    if (process.platform === "win32") return;
    symlinkSync(target, link);
    await expect(backup(database.store, link)).rejects.toThrow(`${link} already exists`);
    expect(existsSync(target)).toBe(false);
  });
});
