// Backup and restore between stores: what is kept, what a failed import leaves, and what is rejected.

import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { insertSql, storedLine } from "../../scripts/backup/lines.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { described } from "../conformance.ts";
import { type Database, failure, openDatabase } from "./database.ts";

const WINDOWS = process.platform === "win32";
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => rmSync(folder, { recursive: true }));

// Connections and backups remove their files when the process ends, but Vitest skips that event.
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
const add = ({ sqlite }: Database, ...lines: string[]) => sqlite.exec(lines.map(storedLine).map(insertSql).join(""));

/** What the store holds, by a backup. */
async function saved({ store }: Database): Promise<string> {
  const file = newFile();
  await backup(store, file);
  return readFileSync(file, "utf8");
}

const RESET = failure('{"D1_RESET_DO":true}');
const LOST = failure("Network connection lost.");

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
  `{"id":9007199254740993,"name":"\\u0000","categoryId":1,"status":"available"}`,
  `{"id":4611686018427387904,"name":"greatest","categoryId":${MAX},"status":"available"}`,
];

/** With a gap in the ids, and keys. */
const LINES = Array.from({ length: 30 }, (_, index) => {
  const id = index < 15 ? index + 1 : index + 100;
  const key = index % 3 ? "" : `,"idempotencyKey":"key ${id}"`;
  return `{"id":${id},"name":"Rex ${id}","categoryId":${id},"status":"sold"${key}}`;
});
/** Bytes of SQL for about four of them. */
const PART = 1_200;
const LINE = (id: number) => `{"id":${id},"name":"Tom","categoryId":1,"status":"sold"}`;
const SMOKE = (id: number) =>
  `{"id":${id},"name":"Smoke test","categoryId":${MAX},"status":"sold","idempotencyKey":"smoke test"}`;

describe("backup and restore", () => {
  it("keep everything that the service accepts, exactly", async () => {
    const [first, second] = [await openDatabase(), await openDatabase()];
    await restore(first.store, fileOf(EXTREMES));
    expect(await saved(first)).toBe(text(EXTREMES));
    // A backup is a file that restore accepts.
    const file = newFile();
    await backup(first.store, file);
    expect(await restore(second.store, file)).toBe(
      `Restored staging from ${file}: ${EXTREMES.length} lines, read back and identical.`,
    );
    expect(await saved(second)).toBe(text(EXTREMES));
    if (!WINDOWS) expect(lstatSync(file).mode & 0o777).toBe(0o600);
  });

  it("name the columns of a store that are not those that they cover", async () => {
    const database = await openDatabase();
    database.sqlite.exec("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    const covered = "but this version covers pets.id, pets.name, pets.category_id, pets.status, pets.idempotency_key.";
    const stores: [Database, string][] = [
      [await openDatabase(0), "(none)"],
      [await openDatabase(1), "pets.id, pets.name, pets.category_id, pets.status"],
      [database, "pets.id, pets.name, pets.category_id, pets.status, pets.idempotency_key, pets.toy_id, toys.id"],
    ];
    for (const [{ store }, stored] of stores) {
      const message = `staging has the columns ${stored}, ${covered}
If columns are missing, run: npx wrangler d1 migrations apply DB --env staging --remote
If there are more, add them to`;
      await expect(backup(store, newFile())).rejects.toThrow(message);
      await expect(restore(store, fileOf(LINES))).rejects.toThrow(message);
    }
  });

  it("read large pages, and smaller ones if names suddenly get longer", async () => {
    const database = await openDatabase();
    database.sqlite.exec(`WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 1600)
      INSERT INTO pets (id, name, category_id, status)
      SELECT id, iif(id <= 1000, 'Rex', printf('%.*c', 4000, 'x')), 1, 'sold' FROM ids`);
    // Callers keep adding animals.
    database.onQuery = () =>
      database.sqlite.exec("INSERT INTO pets (name, category_id, status) VALUES ('a', 1, 'sold')");
    expect((await saved(database)).split("\n").length).toBe(1602 + 1);
    const pages = database.queries.filter(({ sql }) => sql.includes("group_concat"));
    expect(pages.map(({ sql }) => Number(/LIMIT (\d+)/.exec(sql)?.[1]))).toEqual([350, 350, 350, 200, 247, 247]);
    // None sorts.
    for (const { sql } of pages) {
      const plan = database.sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      expect(plan.map(({ detail }) => String(detail)).join()).not.toMatch(/SCAN pets|TEMP B-TREE/);
    }
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
  const FAULTS: [string, (sql: string) => string[], Error?][] = [
    ["fails before it stores anything", () => [], RESET],
    ["fails after it stored some of its rows", (sql) => [sql.slice(0, sql.lastIndexOf("INSERT"))], RESET],
    ["fails after it stored everything", (sql) => [sql], LOST],
    ["is applied twice", (sql) => [sql, sql]],
  ];

  it.each(FAULTS)("stores each part once if every second import %s", async (_, applied, thrown) => {
    const database = await openDatabase();
    database.onLoad = (apply, sql) => {
      if (database.loads.length % 2) return apply(sql);
      applied(sql).forEach(apply);
      if (thrown) throw thrown;
    };
    await restore(database.store, fileOf(LINES), PART);
    expect(database.loads.length).toBeGreaterThan(7);
    expect(await saved(database)).toBe(text(LINES));
  });

  it("continues after it was killed, wherever that was, and after an import that stored half a part", async () => {
    const database = await openDatabase();
    const file = fileOf(LINES);
    for (const [, applied] of FAULTS.slice(0, 3)) {
      const end = database.loads.length + 2;
      database.onLoad = (apply, sql) => {
        if (database.loads.length < end) return apply(sql);
        applied(sql).forEach(apply);
        throw new Error("killed");
      };
      await expect(restore(database.store, file, PART)).rejects.toThrow("killed");
      expect(printed().includes("staging already has the first")).toBe(end > 2);
    }
    database.onLoad = (apply, sql) => apply(sql);
    await restore(database.store, file, PART);
    expect(await saved(database)).toBe(text(LINES));
    // Nothing is left to do.
    const { length } = database.loads;
    print.mockClear();
    await restore(database.store, file, PART);
    expect(database.loads.length).toBe(length);
    expect(printed()).toBe("staging already has the first 30 of 30 lines.");
  });

  it("stores each line once if it runs twice at the same time", async () => {
    const database = await openDatabase();
    const file = fileOf(LINES);
    const results = await Promise.allSettled([
      restore(database.store, file, PART),
      restore(database.store, file, PART),
    ]);
    expect(results.map(({ status }) => status)).toContain("fulfilled");
    expect(await saved(database)).toBe(text(LINES));
  });

  it("stops if something else writes meanwhile, before it stores more", async () => {
    const database = await openDatabase();
    database.onLoad = (apply, sql) => {
      if (database.loads.length === 2) add(database, LINE(100));
      apply(sql);
    };
    await expect(restore(database.store, fileOf(LINES), PART)).rejects.toThrow(
      /^staging is not empty, and differs from the file at line \d+/,
    );
    expect(database.loads.length).toBe(2);
    expect((await saved(database)).endsWith(text([LINE(100)]))).toBe(true);
  });

  it("says first how to go back, gives up after five attempts, and says what Wrangler printed", async () => {
    const database = await openDatabase();
    database.onLoad = () => {
      expect(printed()).toContain("npx wrangler d1 time-travel restore DB --env staging --bookmark 00000000-");
      throw RESET;
    };
    await expect(restore(database.store, fileOf(LINES), PART)).rejects.toBe(RESET);
    expect(database.loads.length).toBe(5);
    // D1 never sees the same file twice.
    expect(new Set(database.loads).size).toBe(5);
  });

  it("asks again, also how far it got, after everything that passes", async () => {
    // As Wrangler prints it.
    const messages = [
      "Currently processing a long-running import.",
      '"text": "Received a malformed response from the API", "notes": [{ "text": "<html><head><title>502 Bad Gateway</title>',
      '"text": "POST /accounts/a/d1/database/b/query -> 503 Service Unavailable"',
      '"text": "Please wait and consider throttling your request speed [code: 971]"',
      '"text": "A request to the Cloudflare API failed.", "notes": [{ "text": "Upstream service unavailable [code: 7009]" }]',
      '"text": "fetch failed"',
      "read ECONNRESET",
      "\u2718 [ERROR] Failed to parse body as JSON, got: error code: 1031",
    ];
    const database = await openDatabase();
    let attempts = 0;
    database.onQuery = () => {
      // Each query succeeds at the last attempt.
      if (++attempts % 5) throw failure(messages[attempts % messages.length] ?? "");
    };
    database.onLoad = (apply, sql) => {
      if (database.loads.length === 2) throw RESET;
      apply(sql);
    };
    await restore(database.store, fileOf(LINES), PART);
    expect(attempts).toBeGreaterThan(5 * 4);
    expect(await saved(database)).toBe(text(LINES));
  });

  it("does not ask again if the answer will not change", async () => {
    const database = await openDatabase();
    let attempts = 0;
    database.onQuery = () => {
      attempts++;
      throw failure("Authentication error [code: 10000]");
    };
    await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("wrangler d1 execute failed");
    expect(attempts).toBe(1);
  });

  it("keeps each import and each statement within the limits of D1, whatever the names", async () => {
    const database = await openDatabase();
    const names = ["'".repeat(4_000), "BEGIN TRANSACTION".repeat(235), "\\u0001".repeat(660), "a"];
    const lines = Array.from({ length: 1200 }, (_, index) => `{"name":"${names[index % 4]}","categoryId":1}`);
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBeGreaterThan(1);
    for (const sql of database.loads) {
      expect(Buffer.byteLength(sql)).toBeLessThan(2_600_000);
      for (const statement of sql.split(";\n")) expect(Buffer.byteLength(statement)).toBeLessThanOrEqual(60_000);
    }
  });

  it.each([
    ["a different line", LINES.with(1, SMOKE(2)), 2],
    ["more lines than the file", [...LINES, LINE(1000)], 31],
    ["the smoke test's animal and a further one", [SMOKE(1), LINE(2)], 1],
    ["a caller's animal under the smoke test's key", [SMOKE(1).replace("Smoke test", "Rex")], 1],
  ])("changes nothing in a store that has %s", async (_, lines, number) => {
    const database = await openDatabase();
    add(database, ...lines);
    const file = fileOf(LINES);
    await expect(restore(database.store, file)).rejects.toThrow(
      `staging is not empty, and differs from the file at line ${number}.\nA restore fills an empty store`,
    );
    expect(printed()).toBe("");
    expect(await saved(database)).toBe(text(lines));
  });

  it.each([
    ["a file that has it elsewhere", 1, LINES.with(20, SMOKE(120))],
    ["a file that has it at the same id", 1, LINES.with(0, SMOKE(1))],
    ["a file that ends with the same id", 129, LINES],
    ["a file of nothing else", 5, [SMOKE(3)]],
  ])("takes a store with only the smoke test's animal for empty: %s", async (_, id, lines) => {
    const database = await openDatabase();
    add(database, SMOKE(id));
    await restore(database.store, fileOf(lines), PART);
    expect(await saved(database)).toBe(text(lines));
  });

  it.each([
    ["a file without it", LINES],
    ["a file that has it later", LINES.with(20, SMOKE(120))],
    ["a file that has it earlier", LINES.with(2, SMOKE(3))],
  ])("continues after smoke tests in the middle of it and between two runs: %s", async (_, lines) => {
    const database = await openDatabase();
    const file = fileOf(lines);
    const testSmoke = () =>
      database.sqlite.exec(`INSERT INTO pets (name, category_id, status, idempotency_key)
        VALUES ('Smoke test', ${MAX}, 'sold', 'smoke test') ON CONFLICT DO NOTHING`);
    database.onLoad = (apply, sql) => {
      if (database.loads.length === 5) throw new Error("killed");
      apply(sql);
      if (database.loads.length === 2) testSmoke();
    };
    await expect(restore(database.store, file, PART)).rejects.toThrow("killed");
    testSmoke();
    database.onLoad = (apply, sql) => apply(sql);
    await restore(database.store, file, PART);
    expect(await saved(database)).toBe(text(lines));
  });

  it.each([
    ["changed a line", "UPDATE pets SET name = 'x' WHERE id = 7", 7],
    ["lost the last line", "DELETE FROM pets WHERE id = 129", 30],
  ])("finds that the store %s", async (_, change, number) => {
    const database = await openDatabase();
    database.sqlite.exec(`CREATE TRIGGER later AFTER INSERT ON pets WHEN new.id = 129 BEGIN ${change}; END`);
    await expect(restore(database.store, fileOf(LINES), PART)).rejects.toThrow(
      `Verification failed: staging differs at line ${number}.`,
    );
  });
});

describe("backup", () => {
  it("saves an empty store in an empty file", async () => {
    expect(await saved(await openDatabase())).toBe("");
  });

  it("neither overwrites nor follows anything", async () => {
    const { store } = await openDatabase();
    const file = fileOf(["kept"]);
    const link = newFile();
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
  });

  it("lets one of two at the same time succeed", async () => {
    const database = await openDatabase();
    await restore(database.store, fileOf(LINES));
    const file = newFile();
    const results = await Promise.allSettled([backup(database.store, file), backup(database.store, file)]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(results.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { message: expect.stringMatching(/^EEXIST: file already exists/) },
    });
    expect(readFileSync(file, "utf8")).toBe(text(LINES));
  });
});
