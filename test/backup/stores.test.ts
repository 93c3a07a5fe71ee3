// Backup and restore between stores: what is kept, what a failed import leaves, and what is rejected.

import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { insertSql, storedLine } from "../../scripts/backup/lines.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { BOOKMARK, type Database, Databases, failure } from "./database.ts";

const WINDOWS = process.platform === "win32";
const databases = new Databases();
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(async () => {
  await databases[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

// Each backup removes what it has begun when the process ends.
process.setMaxListeners(0);

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
const add = ({ sql }: Database, ...lines: string[]) => sql(insertSql(lines.map(storedLine)));

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

/** With a gap in the ids, and keys. Of 300 bytes of SQL, a part holds about four of them. */
const LINES = Array.from({ length: 30 }, (_, index) => {
  const id = index < 15 ? index + 1 : index + 100;
  const key = index % 3 ? "" : `,"idempotencyKey":"key ${id}"`;
  return `{"id":${id},"name":"Rex ${id}","categoryId":${id},"status":"sold"${key}}`;
});
const PART = 300;
const LINE = (id: number) => `{"id":${id},"name":"Tom","categoryId":1,"status":"sold"}`;
const SMOKE = (id: number) =>
  `{"id":${id},"name":"Smoke test","categoryId":${MAX},"status":"sold","idempotencyKey":"smoke test"}`;

describe("backup and restore", () => {
  it("keep everything that the service accepts, exactly", async () => {
    const [first, second] = [await databases.open(), await databases.open()];
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

  it("name the tables and columns that they do not cover, and the migrations that are not applied", async () => {
    const database = await databases.open();
    await database.sql("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    const [none, first] = [await databases.open(0), await databases.open(1)];
    const migrate = "Apply the migrations:\nnpx wrangler d1 migrations apply DB --env staging --remote";
    for (const run of [backup, restore]) {
      const call = ({ store }: Database) => run(store, run === backup ? newFile() : fileOf(LINES));
      await expect(call(database)).rejects.toThrow(
        "No backup covers pets.toy_id, toys.id: add it to scripts/backup/lines.ts, or use",
      );
      await expect(call(none)).rejects.toThrow(
        `staging lacks pets.id, pets.name, pets.category_id, pets.status, pets.idempotency_key. ${migrate}`,
      );
      await expect(call(first)).rejects.toThrow(`staging lacks pets.idempotency_key. ${migrate}`);
    }
  });

  it("read no row twice and none in vain, in pages that fit the rows, and in smaller ones if a page fails", async () => {
    const database = await databases.open();
    const fill = (from: number, to: number, name: string) =>
      database.sql(`WITH RECURSIVE ids (id) AS (SELECT ${from} UNION ALL SELECT id + 1 FROM ids WHERE id < ${to})
        INSERT INTO pets (id, name, category_id, status) SELECT id, '${name}', 1, 'sold' FROM ids`);
    const limits: number[] = [];
    database.onQuery = (sql) => limits.push(...[...sql.matchAll(/LIMIT (\d+)/g)].map(([, limit]) => Number(limit)));
    await fill(1, 1000, "Rex");
    database.rowsRead = 0;
    expect((await saved(database)).split("\n").length).toBe(1001);
    expect(limits).toEqual([350, 2800]);
    // A few more, for the columns and the greatest id.
    expect(database.rowsRead).toBeLessThan(1000 + 50);
    // 2.4 MB, too much for one page: it is rejected, and an eighth of it asked for.
    await fill(1001, 1600, "x".repeat(4000));
    limits.length = 0;
    expect((await saved(database)).split("\n").length).toBe(1601);
    expect(limits.slice(0, 3)).toEqual([350, 2800, 350]);
  });
});

describe("restore", () => {
  const withoutLastRow = (sql: string) => sql.replace(/,\{[^{]*(?=\]')/, "");

  const FAULTS: [string, Database["onLoad"]][] = [
    ["fails before it stores anything", async () => Promise.reject(RESET)],
    [
      "fails after it stored some of its rows",
      (apply, sql) => apply(withoutLastRow(sql)).then(() => Promise.reject(RESET)),
    ],
    ["fails after it stored everything", (apply) => apply().then(() => Promise.reject(LOST))],
    [
      "is applied twice",
      async (apply) => {
        await apply();
        await apply();
      },
    ],
  ];

  it.each(FAULTS)("stores each part once if every second import %s", async (_, fault) => {
    const database = await databases.open();
    database.onLoad = (apply, sql) => (database.loads.length % 2 ? apply() : fault(apply, sql));
    await restore(database.store, fileOf(LINES), PART);
    expect(database.loads.length).toBeGreaterThan(7);
    expect(await saved(database)).toBe(text(LINES));
  });

  it("continues after it was killed, wherever that was, and after an import that stored half a part", async () => {
    const database = await databases.open();
    const file = fileOf(LINES);
    const killed = new Error("killed");
    const moments: Database["onLoad"][] = [
      () => Promise.reject(killed),
      (apply) => apply().then(() => Promise.reject(killed)),
      (apply, sql) => apply(withoutLastRow(sql)).then(() => Promise.reject(killed)),
    ];
    for (const [index, moment] of moments.entries()) {
      const end = database.loads.length + 2;
      database.onLoad = (apply, sql) => (database.loads.length === end ? moment(apply, sql) : apply());
      await expect(restore(database.store, file, PART)).rejects.toThrow("killed");
      if (index > 0) expect(printed()).toMatch(/staging already has the first \d+ of 30 lines/);
    }
    database.onLoad = (apply) => apply();
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
    const database = await databases.open();
    const file = fileOf(LINES);
    const results = await Promise.allSettled([
      restore(database.store, file, PART),
      restore(database.store, file, PART),
    ]);
    expect(results.map(({ status }) => status)).toContain("fulfilled");
    expect(await saved(database)).toBe(text(LINES));
  });

  it("stops if something else writes meanwhile, before it stores more", async () => {
    const database = await databases.open();
    database.onLoad = async (apply) => {
      const [row] = await database.sql("SELECT max(id) AS id FROM pets");
      if (row?.["id"] === 15) await add(database, LINE(16));
      await apply();
    };
    const lines = LINES.map((line, index) => line.replace("Rex", "x".repeat(index === 15 ? 300 : 3)));
    await expect(restore(database.store, fileOf(lines), PART)).rejects.toThrow(
      /^staging is not empty, and differs from the file at line 16/,
    );
    expect(await database.sql("SELECT max(id) AS id FROM pets")).toEqual([{ id: 16 }]);
  });

  it("gives up after five attempts, and says so with what Wrangler printed", async () => {
    const database = await databases.open();
    database.onLoad = () => Promise.reject(RESET);
    await expect(restore(database.store, fileOf(LINES), PART)).rejects.toBe(RESET);
    expect(database.loads.length).toBe(5);
    // D1 never sees the same file twice.
    expect(new Set(database.loads).size).toBe(5);
  });

  // As Wrangler prints them.
  it.each([
    "Currently processing a long-running import.",
    '"text": "Received a malformed response from the API", "notes": [{ "text": "<html><head><title>502 Bad Gateway</title>',
    '"text": "POST /accounts/a/d1/database/b/query -> 503 Service Unavailable"',
    '"text": "Please wait and consider throttling your request speed [code: 971]"',
    '"text": "A request to the Cloudflare API failed.", "notes": [{ "text": "Upstream service unavailable [code: 7009]" }]',
    '"text": "fetch failed"',
    "read ECONNRESET",
  ])("asks again, also how far it got, after: %s", async (message) => {
    const database = await databases.open();
    let [queries, failures] = [0, 0];
    database.onQuery = () => {
      // Each query succeeds at the third attempt.
      if (++queries % 3 === 0) return;
      failures++;
      throw failure(message);
    };
    database.onLoad = (apply) => (database.loads.length === 2 ? Promise.reject(RESET) : apply());
    await restore(database.store, fileOf(LINES), PART);
    expect(failures).toBeGreaterThan(8);
    database.onQuery = () => {};
    expect(await saved(database)).toBe(text(LINES));
  });

  it("does not ask again if the answer will not change", async () => {
    const database = await databases.open();
    let queries = 0;
    database.onQuery = () => {
      queries++;
      throw failure("Authentication error [code: 10000]");
    };
    await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("wrangler d1 execute failed");
    expect(queries).toBe(1);
  });

  it("keeps each import and each statement within the limits of D1, whatever the names", async () => {
    const database = await databases.open();
    const names = ["'".repeat(4_000), "BEGIN TRANSACTION".repeat(235), "\\u0001".repeat(660), "a"];
    const lines = Array.from({ length: 1200 }, (_, index) => `{"name":"${names[index % 4]}","categoryId":1}`);
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBeGreaterThan(1);
    for (const sql of database.loads) {
      expect(Buffer.byteLength(sql)).toBeLessThan(2_600_000);
      for (const statement of sql.split(";\n")) expect(Buffer.byteLength(statement)).toBeLessThanOrEqual(60_000);
    }
  });

  it("says before it starts what callers notice, and how to go back", async () => {
    const database = await databases.open();
    database.onLoad = () => Promise.reject(new Error(printed()));
    await expect(
      restore(database.store, fileOf(LINES)),
    ).rejects.toThrow(`Callers get 503 while staging is restored. To return to the state before this run:
npx wrangler d1 time-travel restore DB --env staging --bookmark ${BOOKMARK}`);
  });

  it.each([
    ["a different line", LINES.with(1, SMOKE(2)), 2],
    ["more lines than the file", [...LINES, LINE(1000)], 31],
    ["the smoke test's animal and a further one", [SMOKE(1), LINE(2)], 1],
    ["a caller's animal under the smoke test's key", [SMOKE(1).replace("Smoke test", "Rex")], 1],
  ])("changes nothing in a store that has %s", async (_, lines, number) => {
    const database = await databases.open();
    await add(database, ...lines);
    const file = fileOf(LINES);
    await expect(restore(database.store, file)).rejects.toThrow(
      `staging is not empty, and differs from the file at line ${number}.\nA restore fills an empty store`,
    );
    expect(printed()).toBe("");
    expect(await saved(database)).toBe(text(lines));
  });

  it.each([
    ["a file without it", 1, LINES],
    ["a file that has it elsewhere", 1, LINES.with(20, SMOKE(120))],
    ["a file that has it at the same id", 1, LINES.with(0, SMOKE(1))],
    ["a file that ends with the same id", 129, LINES],
    ["a file of nothing else", 5, [SMOKE(3)]],
  ])("takes a store with only the smoke test's animal for empty: %s", async (_, id, lines) => {
    const database = await databases.open();
    await add(database, SMOKE(id));
    await restore(database.store, fileOf(lines), PART);
    expect(await saved(database)).toBe(text(lines));
  });

  it.each([
    ["a file without it", LINES],
    ["a file that has it later", LINES.with(20, SMOKE(120))],
    ["a file that has it earlier", LINES.with(2, SMOKE(3))],
  ])("continues after smoke tests in the middle of it and between two runs: %s", async (_, lines) => {
    const database = await databases.open();
    const file = fileOf(lines);
    const testSmoke = () =>
      database.sql(`INSERT INTO pets (name, category_id, status, idempotency_key)
        VALUES ('Smoke test', ${MAX}, 'sold', 'smoke test') ON CONFLICT DO NOTHING`);
    database.onLoad = async (apply) => {
      if (database.loads.length === 5) throw new Error("killed");
      await apply();
      if (database.loads.length === 2) await testSmoke();
    };
    await expect(restore(database.store, file, PART)).rejects.toThrow("killed");
    await testSmoke();
    database.onLoad = (apply) => apply();
    await restore(database.store, file, PART);
    expect(await saved(database)).toBe(text(lines));
  });

  it("finds what a store has made of a line", async () => {
    const database = await databases.open();
    await database.sql(
      "CREATE TRIGGER later AFTER INSERT ON pets WHEN new.id = 120 BEGIN UPDATE pets SET name = 'x' WHERE id = 7; END",
    );
    const file = fileOf(LINES);
    await expect(restore(database.store, file, PART)).rejects.toThrow(
      `Verification failed: staging differs from the file at line 7.`,
    );
  });

  it("finds that the store lost the last line", async () => {
    const database = await databases.open();
    database.onLoad = async (apply) => {
      await apply();
      await database.sql("DELETE FROM pets WHERE id = 129");
    };
    const file = fileOf(LINES);
    await expect(restore(database.store, file)).rejects.toThrow(
      `Verification failed: staging differs from the file at line 30.`,
    );
  });
});

describe("backup", () => {
  it("saves an empty store in an empty file", async () => {
    expect(await saved(await databases.open())).toBe("");
  });

  it("neither overwrites nor follows anything", async () => {
    const { store } = await databases.open();
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
    await expect(backup(store, join(folder, "nowhere/pets.jsonl"))).rejects.toThrow(
      `The folder ${join(folder, "nowhere")} does not exist: create it first.`,
    );
  });

  it("lets one of two at the same time succeed", async () => {
    const database = await databases.open();
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
