// Backup and restore between stores: what is kept, what a failed import leaves, and what is rejected.

import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup, publish } from "../../scripts/backup/backup.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { readExtent, readStore } from "../../scripts/backup/store.ts";
import { copyProject, removeProject } from "../http/dev-server.ts";
import { BOOKMARK, type Database, Databases, failure } from "./database.ts";

const WINDOWS = process.platform === "win32";
const databases = new Databases();
const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
const project = copyProject();
afterAll(async () => {
  await databases[Symbol.asyncDispose]();
  removeProject(folder);
  removeProject(project);
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
  `{"id":2,"name":"${"'".repeat(65_000)}","categoryId":-1,"status":"pending"}`,
  `{"id":3,"name":"${"\\u0001".repeat(10_000)}","categoryId":0,"status":"sold","idempotencyKey":"'"}`,
  `{"id":4,"name":"a\\u0000b\\u0000","categoryId":9007199254740993,"status":"sold","idempotencyKey":"${"~".repeat(255)}"}`,
  `{"id":5,"name":"\u2028;\u2029; -- \u0085\u007f\\r\\n\\t\\"'\\\\","categoryId":1,"status":"sold","idempotencyKey":"\\"a,\\\\ b\\""}`,
  `{"id":6,"name":"BEGIN TRANSACTION; COMMIT;","categoryId":1,"status":"available","idempotencyKey":"BEGIN TRANSACTION;"}`,
  `{"id":7,"name":"${" ".repeat(40_000)}\\u0000","categoryId":1,"status":"available"}`,
  `{"id":8,"name":"${"😀".repeat(16_000)}\ufeff","categoryId":1,"status":"available"}`,
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

  it("cover a further table by one more entry in the list", async () => {
    const database = await databases.open();
    await database.sql("CREATE TABLE toys (id INTEGER PRIMARY KEY, name TEXT NOT NULL, color TEXT) STRICT");
    const tables = join(project, "scripts/backup/tables.ts");
    const entry = `table(
      "toys",
      { id: "id", name: "name", color: { optional: "color" } },
      { id: Pet.shape.id, name: Pet.shape.name, color: z.optional(z.string()) },
    ),`;
    writeFileSync(tables, readFileSync(tables, "utf8").replace("TABLES = [", `$&${entry}`));
    const load = (name: string) => import(pathToFileURL(join(project, `scripts/backup/${name}.ts`)).href);
    const [{ restore }, { backup }] = [await load("restore"), await load("backup")];
    const lines = [
      '{"table":"toys","id":1,"name":"bone"}',
      '{"table":"toys","id":7,"name":"ball","color":"red"}',
      '{"id":1,"name":"Rex","categoryId":1,"status":"sold"}',
      '{"id":2,"name":"Tom","categoryId":1,"status":"sold"}',
    ];
    await expect(restore(database.store, fileOf(lines.toReversed()))).rejects.toThrow(
      /line 3: is a line of toys, which must come before those of pets/,
    );
    // Broken between the tables, and continued.
    database.onLoad = async (apply) => {
      if (database.loads.length === 2) throw new Error("killed");
      await apply();
    };
    const file = fileOf(lines);
    await expect(restore(database.store, file)).rejects.toThrow("killed");
    database.onLoad = (apply) => apply();
    await restore(database.store, file);
    const copy = newFile();
    await backup(database.store, copy);
    expect(readFileSync(copy, "utf8")).toBe(text(lines));
    // With anything else, the smoke test's animal is data.
    await database.sql(`DELETE FROM pets; INSERT INTO pets VALUES (1, 'Smoke test', ${MAX}, 'sold', 'smoke test')`);
    await expect(restore(database.store, file)).rejects.toThrow("staging is not empty, and differs");
    expect(await database.sql("SELECT id FROM pets")).toEqual([{ id: 1 }]);
  });

  it("name the tables and columns that they do not cover, and the migrations that are not applied", async () => {
    const database = await databases.open();
    await database.sql("CREATE TABLE toys (id INTEGER PRIMARY KEY); ALTER TABLE pets ADD COLUMN toy_id INTEGER");
    const [none, first] = [await databases.open(0), await databases.open(1)];
    const migrate = "Apply the migrations:\nnpx wrangler d1 migrations apply DB --env staging --remote";
    for (const run of [backup, restore]) {
      const call = ({ store }: Database) => run(store, run === backup ? newFile() : fileOf(LINES));
      await expect(call(database)).rejects.toThrow(
        "No backup covers pets.toy_id, toys.id: add it to scripts/backup/tables.ts, or use",
      );
      await expect(call(none)).rejects.toThrow(
        `staging lacks pets.id, pets.name, pets.category_id, pets.status, pets.idempotency_key. ${migrate}`,
      );
      await expect(call(first)).rejects.toThrow(`staging lacks pets.idempotency_key. ${migrate}`);
    }
  });

  it("read no row twice and none in vain, in pages that fit the rows, and in smaller ones if a page fails", async () => {
    const database = await databases.open();
    await database.sql(`WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 2200)
      INSERT INTO pets (id, name, category_id, status) SELECT id, printf('%.*c', 5000, 'x'), 1, 'sold' FROM ids`);
    database.rowsRead = 0;
    const limits: number[] = [];
    database.onQuery = (sql) => {
      const [, limit] = /LIMIT (\d+)/.exec(sql) ?? [];
      if (limit && limits.push(Number(limit)) === 2) throw failure("D1 DB exceeded its memory limit and was reset.");
    };
    expect((await saved(database)).split("\n").length).toBe(2201);
    // About 4 MB, and then an eighth of it.
    expect(limits.slice(0, 4)).toEqual([1000, 792, 99, 792]);
    // A few more, for the tables, their columns and the greatest id.
    expect(database.rowsRead).toBeLessThan(2200 + 50);
    // Progress is shown without counting rows.
    const reached: string[] = [];
    for await (const page of readStore(database.store, await readExtent(database.store))) reached.push(page.reached);
    expect(reached).toEqual([1000, 1792, 2200].map((id) => `pets up to id ${id} of 2200`));
  });
});

describe("restore", () => {
  const FAULTS: [string, Database["onLoad"]][] = [
    ["fails before it stores anything", async () => Promise.reject(RESET)],
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
      (apply, sql) => apply(sql.replace(/,\{[^{]*(?=\]')/, "")).then(() => Promise.reject(killed)),
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
      if (row?.["id"] === 15) await database.sql("INSERT INTO pets VALUES (16, 'Tom', 1, 'sold', NULL)");
      await apply();
    };
    const lines = LINES.map((line, index) => line.replace("Rex", "x".repeat(index === 15 ? 300 : 3)));
    await expect(restore(database.store, fileOf(lines), PART)).rejects.toThrow(
      "Something else has changed staging during the restore.",
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

  it("asks again while D1 is busy, and not if the answer will not change", async () => {
    const database = await databases.open();
    let queries = 0;
    database.onQuery = () => {
      if (++queries < 4) throw failure("Currently processing a long-running import.");
    };
    await restore(database.store, fileOf(LINES));
    expect(queries).toBeGreaterThan(4);
    queries = 0;
    database.onQuery = () => {
      queries++;
      throw failure("Authentication error");
    };
    await expect(restore(database.store, fileOf(LINES))).rejects.toThrow("wrangler d1 execute failed");
    expect(queries).toBe(1);
  });

  it("keeps each import and each statement within the limits of D1, whatever the names", async () => {
    const database = await databases.open();
    const names = ["'".repeat(65_000), "BEGIN TRANSACTION".repeat(3_800), "\\u0001".repeat(10_900), "a"];
    const lines = Array.from({ length: 160 }, (_, index) => `{"name":"${names[index % 4]}","categoryId":1}`);
    await restore(database.store, fileOf(lines));
    expect(database.loads.length).toBeGreaterThan(2);
    for (const sql of database.loads) {
      expect(Buffer.byteLength(sql)).toBeLessThan(4_000_000);
      for (const statement of sql.split(";\n")) expect(Buffer.byteLength(statement)).toBeLessThanOrEqual(100_000);
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
    ["more lines than the file", [...LINES, SMOKE(1000)], 31],
    [
      "the smoke test's animal and a further one",
      [SMOKE(1), '{"id":2,"name":"Tom","categoryId":1,"status":"sold"}'],
      1,
    ],
    ["a caller's animal under the smoke test's key", [SMOKE(1).replace("Smoke test", "Rex")], 1],
  ])("changes nothing in a store that has %s", async (_, lines, number) => {
    const database = await databases.open();
    await restore(database.store, fileOf(lines));
    print.mockClear();
    const file = fileOf(LINES);
    await expect(restore(database.store, file)).rejects.toThrow(
      `staging is not empty, and differs from ${file} at line ${number}.\nA restore fills an empty store`,
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
    await restore(database.store, fileOf([SMOKE(id)]));
    // Also if it is killed before anything else is stored.
    database.onLoad = () => Promise.reject(new Error("killed"));
    await expect(restore(database.store, fileOf(lines), PART)).rejects.toThrow("killed");
    database.onLoad = (apply) => apply();
    await restore(database.store, fileOf(lines), PART);
    expect(await saved(database)).toBe(text(lines));
  });

  it("finds what a store has made of a line", async () => {
    const database = await databases.open();
    await database.sql(
      "CREATE TRIGGER later AFTER INSERT ON pets WHEN new.id = 120 BEGIN UPDATE pets SET name = 'x' WHERE id = 7; END",
    );
    const file = fileOf(LINES);
    await expect(restore(database.store, file, PART)).rejects.toThrow(
      `Verification failed: staging differs from ${file} at line 7.`,
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
      `Verification failed: staging differs from ${file} at line 30.`,
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
    await expect(backup(store, join(folder, "nowhere/pets.jsonl"))).rejects.toThrow(/^ENOENT: .*nowhere/);
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

  it("publishes on a file system without hard links, without overwriting anything", () => {
    const [partial, file] = [fileOf(["new"]), newFile()];
    const none = () => {
      throw Object.assign(new Error("ENOTSUP"), { code: "ENOTSUP" });
    };
    publish(partial, file, none);
    expect(readFileSync(file, "utf8")).toBe("new\n");
    const next = fileOf(["newer"]);
    expect(() => publish(next, file, none)).toThrow(/^EEXIST/);
    expect(() => publish(next, file)).toThrow(/^EEXIST/);
    expect(readFileSync(file, "utf8")).toBe("new\n");
    rmSync(next);
  });
});
