// Backup and restore of stores: what is kept, what a failed import leaves, and what is refused.

import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

function fileOf(lines: string[]): string {
  const file = newFile();
  writeFileSync(file, text(lines));
  return file;
}

const text = (lines: string[]) => lines.map((line) => `${line}\n`).join("");

/** Adds animals as another program would. */
const add = ({ sqlite }: Database, ...lines: string[]) => sqlite.exec([...insertSql(lines.map(storedLine))].join(""));

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
const [MIN, MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

/** With a gap in the ids, and keys. A statement stores four of them. */
const LINES = Array.from({ length: 30 }, (_, index) => {
  const id = index < 15 ? index + 1 : index + 100;
  const key = index % 3 ? "" : `,"idempotencyKey":"key ${id}"`;
  return `{"id":${id},"name":"Rex ${"😀".repeat(990)}","categoryId":${id},"status":"sold"${key}}`;
});
/** Characters of SQL for two statements. */
const PART = 10_000;
const LINE = (id: number) => `{"id":${id},"name":"Tom","categoryId":1,"status":"sold"}`;

describe("backup and restore", () => {
  it("keep whatever callers can store, exactly", async () => {
    const [source, target] = [await openDatabase(), await openDatabase()];
    const difficult = fc.constantFrom(..."'\"\\;-/*\u0000\u001f\t\r\n\u007f\u0085\u2028\ufeff\uffff😀");
    const any = fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
    const row = fc.record(
      {
        name: fc.string({ unit: fc.oneof(difficult, any) }),
        categoryId: fc.oneof(fc.constantFrom(MIN, MAX, 2n ** 53n + 1n), fc.bigInt(MIN, MAX)),
        status: fc.constantFrom("available", "pending", "sold"),
        idempotencyKey: fc.string({ unit: "grapheme-ascii", maxLength: 250 }),
      },
      { requiredKeys: ["name", "categoryId", "status"] },
    );
    const property = fc.asyncProperty(fc.array(row, { minLength: 1 }), async (rows) => {
      const lines = rows.map(({ name, idempotencyKey, ...others }, index) => {
        const key = idempotencyKey === undefined ? {} : { idempotencyKey: `${index} ${idempotencyKey}` };
        // The last one has the greatest id.
        return printJson({ id: MAX - BigInt(rows.length - 1 - index), name: `${name}x`, ...others, ...key });
      });
      for (const { sqlite } of [source, target]) sqlite.exec("DELETE FROM pets");
      add(source, ...lines);
      expect(await saved(source)).toBe(text(lines));
      await restore(target.store, fileOf(lines));
      expect(await saved(target)).toBe(text(lines));
    });
    await fc.assert(property, { numRuns: 40 });
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
    ["Chinese", "猫".repeat(1_000)],
    ["the longest", "\u0001".repeat(1_000)],
  ])("read no page in vain if names are similar: %s", async (_, name) => {
    const database = await openDatabase();
    const rows = Math.ceil(3_000_000 / Buffer.byteLength(JSON.stringify(name)));
    addMany(database, rows, "?", name);
    database.sqlite.exec(`UPDATE pets SET idempotency_key = printf('%0255d', id)`);
    expect((await saved(database)).split("\n").length).toBe(rows + 1);
    const pages = database.queries.filter(({ sql }) => sql.includes("group_concat"));
    expect(pages.length).toBeLessThan(20);
    // None of them failed.
    expect(pages.filter(({ output }) => output === undefined)).toEqual([]);
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
    database.sqlite.exec("PRAGMA ignore_check_constraints = 1");
    addMany(database, 3, "iif(id = 2, ?, 'Rex')", '"'.repeat(1_100_000));
    await expect(saved(database)).rejects.toThrow("string or blob too big");
  });

  it("keep what only SQL can have stored, and name it", async () => {
    const [database, lines] = [await openDatabase(), [LINE(-5), LINE(1)]];
    add(database, ...lines);
    expect(await saved(database)).toBe(text(lines));
    await expect(restore(database.store, fileOf(lines))).rejects.toThrow("\nline 1: id must be positive\n");
  });
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
    ["is applied twice", (sql) => [sql, sql]],
  ])("stores everything once if every second import %s", async (_, applied, thrown) => {
    const database = await openDatabase();
    database.onLoad = (apply, sql) => {
      if (database.loads.length % 2 === 0) return apply(sql);
      applied(sql).forEach(apply);
      if (thrown) throw thrown;
    };
    await restore(database.store, fileOf(LINES), PART);
    // D1 does not run the same file twice.
    expect(new Set(database.loads).size).toBe(thrown ? 8 : 4);
    expect(await saved(database)).toBe(text(LINES));
  });

  it("continues if it was killed at any moment, beside a different one or after it", async () => {
    for (let kill = 1, isReached = true; isReached; kill++) {
      const database = await openDatabase();
      const stores = [database.store, await database.openAgain()];
      const file = fileOf(LINES);
      let commands = 0;
      database.onCommand = () => (++commands === kill ? expect.fail("killed") : undefined);
      await Promise.allSettled(stores.map((store) => restore(store, file, PART)));
      isReached = commands >= kill;
      database.onCommand = () => {};
      await restore(database.store, file, PART);
      expect(await saved(database)).toBe(text(LINES));
    }
  });

  it("continues after the lines that the store has", async () => {
    const database = await openDatabase();
    add(database, ...LINES.slice(0, 20));
    await restore(database.store, fileOf(LINES));
    expect(printed()).toContain("\nstaging already has the first 20 of 30 lines.");
    expect(database.loads.join().match(/"id":/g)?.length).toBe(10);
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
    add(database, LINE(1));
    database.onQuery = () => {
      // A page fails.
      if (++attempts > 6) throw failure("set a CLOUDFLARE_API_TOKEN");
    };
    await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("Run npx wrangler login");
    expect(attempts).toBe(7);
  });

  it("keeps each import and each statement within the limits of D1, whatever the names", async () => {
    const database = await openDatabase();
    const names = ["'".repeat(1_000), "BEGIN TRANSACTION".repeat(58), "\\u0001".repeat(1_000), "😀".repeat(1_000)];
    const lines = Array.from({ length: 800 }, (_, index) => `{"name":"${names[index % 4]}","categoryId":1}`);
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBeGreaterThan(1);
    for (const sql of database.loads) expect(Buffer.byteLength(sql)).toBeLessThan(2_600_000);
  });

  it("stores many animals with one statement, because each takes milliseconds", async () => {
    const database = await openDatabase();
    await restore(database.store, fileOf(Array.from({ length: 1_000 }, (_, index) => LINE(index + 1))));
    expect(database.loads.join().match(/INSERT/g)?.length).toBeLessThan(10);
    // What the table rejects is not skipped like a row that is there.
    expect(() => add(database, LINE(1001).replace("Tom", " "))).toThrow("CHECK constraint failed");
  });

  const REPLACE = {
    local: "stop npm run dev, and remove .wrangler/state. ",
    open: `close the service ("Close the service" in docs/OPERATIONS.md):
npx wrangler secret put MAINTENANCE --env staging\n`,
    closed: `save them first ("Replace a store" in docs/OPERATIONS.md).
Keep this command, which takes everything back:
npx wrangler d1 time-travel restore DB --env staging --bookmark 00000000-00000001
Remove all animals (this does not ask):
npx wrangler d1 execute DB --env staging --remote --command "DELETE FROM pets"\n`,
  };
  const staging = (database: Database) => database.store;
  const local = (database: Database) => ({ ...database.store, environment: "local", isLocal: true });

  it.each(Object.entries(REPLACE))(
    "changes nothing in a different store (%s), and says what to do",
    async (name, how) => {
      const database = await openDatabase();
      if (name === "open") database.secrets = ["API_KEY"];
      const store = name === "local" ? local(database) : staging(database);
      for (const [lines, line] of [[[LINE(1000)], 1] as const, [LINES.with(1, LINE(2)), 2] as const]) {
        database.sqlite.exec("DELETE FROM pets");
        add(database, ...lines);
        await expect(restore(store, fileOf(LINES))).rejects.toThrow(
          `${store.environment} is not empty, and differs from the file at line ${line}. Nothing was changed.
A restore fills an empty store, or continues one that did not finish.
To replace the animals of ${store.environment} with those of the file, ${how}Then run this command again.`,
        );
      }
      await expect(restore(store, fileOf(["{"]))).rejects.toThrow("has invalid lines");
      expect([printed(), database.loads]).toEqual(["", []]);
    },
  );

  it("says if there is more than the file, from before or from a caller, and what to do", async () => {
    const [database, file] = [await openDatabase(), fileOf(LINES)];
    database.onLoad = (apply, sql) => apply(sql + [...insertSql([storedLine(LINE(1000))])].join(""));
    for (const _ of ["meanwhile", "before"]) {
      expect(await restore(database.store, file)).toContain(
        `Restored staging from ${file}: 30 lines, read back and identical.
staging also has animals with greater ids.\nTo replace the animals of staging with those of the file, save them first`,
      );
      expect(database.loads.length).toBe(1);
    }
    expect(printed()).toMatch(/^Callers get 503 (.+\n)+npx wrangler d1 time-travel restore .+ --bookmark 0{8}-0{7}1$/);
  });

  const CALLER = "INSERT INTO pets (name, category_id, status, id, idempotency_key) VALUES ('Caller', 1, 'sold', ";
  it.each([
    ["an animal that a caller adds meanwhile", `${CALLER}115, NULL)`, 16],
    ["its Idempotency-Key", `${CALLER}1000, 'key 127')`, 28],
    ["a change by SQL", "UPDATE pets SET name = 'x' WHERE id = 7", 7],
  ])("finds at the end what was in the way: %s", async (_, change, line) => {
    const close = 'close the service ("Close the service" in docs/OPERATIONS.md), and return to the bookmark above. ';
    for (const [how, choose] of [[close, staging] as const, [REPLACE.local, local] as const]) {
      const database = await openDatabase();
      database.onLoad = (apply, sql) => {
        apply(sql);
        if (database.loads.length === 1) database.sqlite.exec(change);
      };
      await expect(restore(choose(database), fileOf(LINES), PART)).rejects.toThrow(
        `differs from the file at line ${line}.
Something else writes to it. To repeat the restore, ${how}Then run this command again.`,
      );
    }
  });
});

describe("backup", () => {
  it.each([
    ["'New'", 700],
    ["iif(id = 1, 'Old', 'New')", 700],
    ["iif(id = 400, 'Old', 'New')", 700],
    ["'Old'", 1],
  ])("is of one store, or fails, if at any moment the names become %s, of %i animals", async (name, count) => {
    const failures: string[] = [];
    for (let moment = 1, isReached = true; isReached; moment++) {
      const [database, other] = [await openDatabase(), await openDatabase()];
      addMany(database, 400, "?", "Old");
      addMany(other, count, `iif(true, ${name}, ?)`, "");
      const stores = [await saved(database), await saved(other)];
      let queries = 0;
      database.onQuery = () => {
        if (++queries !== moment) return;
        database.sqlite.exec("DELETE FROM pets");
        addMany(database, count, `iif(true, ${name}, ?)`, "");
      };
      const file = newFile();
      const end = await backup(database.store, file).catch((thrown: Error) => thrown.message);
      isReached = queries >= moment;
      if (end.startsWith("Saved")) {
        expect(stores).toContain(readFileSync(file, "utf8"));
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
    const [file, link, late] = [fileOf(["kept"]), newFile(), newFile()];
    // On Windows only an administrator can make one.
    if (!WINDOWS) symlinkSync(join(folder, "nowhere"), link);
    for (const taken of [file, ...(WINDOWS ? [] : [link])]) {
      const message = `${taken} already exists, and a backup never overwrites anything. Name a different file.`;
      await expect(backup(database.store, taken)).rejects.toThrow(message);
    }
    // Nor what appears meanwhile.
    database.onQuery = () => writeFileSync(late, "kept");
    await expect(backup(database.store, late)).rejects.toThrow(/^EEXIST: /);
    expect([file, late].map((name) => readFileSync(name, "utf8"))).toEqual(["kept\n", "kept"]);
    expect(existsSync(join(folder, "nowhere"))).toBe(false);
  });
});
