// Backup and restore between stores: what is kept, what a failed import leaves, and what is rejected.

import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { Failure, insertSql, LINE_BYTES, storedLine } from "../../scripts/backup/lines.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { printJson } from "../../src/values/json.ts";
import { described } from "../conformance.ts";
import { type Database, failure, openDatabase } from "./database.ts";

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
const add = ({ sqlite }: Database, ...lines: string[]) => sqlite.exec(lines.map(storedLine).map(insertSql).join(""));

/** Adds animals with the ids from 1 on. `name`: SQL, in which `?` is `value`. */
const addMany = ({ sqlite }: Database, count: number, name: string, value: string) =>
  sqlite
    .prepare(`WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
      INSERT INTO pets (id, name, category_id, status) SELECT id, ${name}, 1, 'sold' FROM ids`)
    .run(value);

/** What the store holds, as other programs see it. */
const rows = ({ sqlite }: Database) =>
  String(sqlite.prepare("SELECT group_concat(id || name) AS rows FROM pets").get()?.["rows"]);

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

const FAULTS: [string, (sql: string) => string[], Error?][] = [
  ["fails before it stores anything", () => [], RESET],
  ["fails after it stored some of its rows", (sql) => [sql.slice(0, sql.lastIndexOf("INSERT"))], RESET],
  ["fails after it stored everything", (sql) => [sql], LOST],
  ["is applied twice", (sql) => [sql, sql]],
  ["fails after it removed rows", (sql) => [sql.slice(0, sql.indexOf("INSERT"))], RESET],
];

const OLD = [LINE(1), ...LINES.slice(1, 4), LINE(6)];

/** A store with `lines`, and a file next to which a restore saves them: `copies` are the contents of what it saved. */
async function setUp(lines: string[], replacement = LINES) {
  const database = await openDatabase();
  add(database, ...lines);
  const subfolder = mkdtempSync(join(folder, "replace-"));
  const file = join(subfolder, "pets.jsonl");
  writeFileSync(file, text(replacement));
  const copies = () => {
    const names = readdirSync(subfolder).filter((name) => /^before-staging-2[\dTZ-]+\.jsonl$/.test(name));
    return names.map((name) => readFileSync(join(subfolder, name), "utf8"));
  };
  return { database, file, copies };
}

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
    expect((await saved(database)).split("\n").length).toBe(1602 + 1);
  });

  it("name an animal that is too large for D1, which only SQL can have added", async () => {
    for (const name of ["x".repeat(1_950_000), '"'.repeat(1_100_000)]) {
      const database = await openDatabase();
      addMany(database, 400, "iif(id <> 370, 'Rex', ?)", name);
      await expect(backup(database.store, newFile())).rejects.toThrow(`Animal 370 is too large to be read.`);
    }
  });
});

it("every store is restored identically, except for the lines that its backup names", async () => {
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
    maxLength: 6,
    comparator: (a, b) => a.id === b.id || (a.idempotencyKey ?? a) === b.idempotencyKey,
  });
  const property = fc.asyncProperty(rows, async (generated) => {
    for (const { sqlite } of [source, target]) sqlite.exec("DELETE FROM pets");
    const stored = generated.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const lines = stored.map((pet) => printJson(pet));
    add(source, ...lines);
    const file = newFile();
    const [message, ...warning] = (await backup(source.store, file)).split("\n");
    expect(message).toBe(`Saved staging in ${file}: ${lines.length} lines.`);
    expect(readFileSync(file, "utf8")).toBe(text(lines));
    const valid = lines.filter((line, index) => {
      const { id = 0n } = stored[index] ?? {};
      const isValid = id >= 1n && id <= 2n ** 62n && Buffer.byteLength(line) <= LINE_BYTES;
      expect(warning.some((fault) => fault.startsWith(`line ${index + 1}: `))).toBe(!isValid);
      return isValid;
    });
    if (valid.length > 0) await restore(target.store, fileOf(valid));
    expect(await saved(target)).toBe(text(valid));
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
  it.each(FAULTS.flatMap((fault) => [false, true].map((replace) => ({ replace, fault }))))(
    "stores each part once if every second import $fault.0 (--replace: $replace)",
    async ({ replace, fault: [, applied, thrown] }) => {
      const { database, file } = await setUp(replace ? OLD : []);
      database.onLoad = (apply, sql) => {
        if (database.loads.length % 2 === 0) return apply(sql);
        applied(sql).forEach(apply);
        if (thrown) throw thrown;
      };
      await restore(database.store, file, replace, PART);
      expect(database.loads.length).toBeGreaterThan(7);
      expect(await saved(database)).toBe(text(LINES));
    },
  );

  it.each([
    [false, 2],
    [true, 1],
    [true, 2],
  ])("stops if something else writes meanwhile (--replace: %s, part %d)", async (replace, part) => {
    const { database, file } = await setUp(replace ? OLD : []);
    let stored = "";
    database.onLoad = (apply, sql) => {
      if (database.loads.length === part) add(database, LINE(100));
      stored = rows(database);
      apply(sql);
    };
    await expect(restore(database.store, file, replace, PART)).rejects.toThrow(
      /^Something else has added animals to staging during the restore, which stopped\.\nTo save and replace what/,
    );
    expect([database.loads.length, rows(database)]).toEqual([part, stored]);
  });

  it("says first how to go back, gives up after five attempts, and says what Wrangler printed", async () => {
    const database = await openDatabase();
    database.onLoad = () => {
      expect(printed()).toContain("npx wrangler d1 time-travel restore DB --env staging --bookmark 00000000-");
      throw RESET;
    };
    await expect(restore(database.store, fileOf(LINES), false, PART)).rejects.toBe(RESET);
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
    await restore(database.store, fileOf(LINES), false, PART);
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
    ["a caller's animal under the smoke test's key", [SMOKE(1).replace("sold", "pending")], 1],
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
    await restore(database.store, fileOf(lines), false, PART);
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
    await expect(restore(database.store, file, false, PART)).rejects.toThrow("killed");
    testSmoke();
    database.onLoad = (apply, sql) => apply(sql);
    await restore(database.store, file, false, PART);
    expect(await saved(database)).toBe(text(lines));
  });

  it.each([
    ["changed a line", "UPDATE pets SET name = 'x' WHERE id = 7", 7],
    ["lost the last line", "DELETE FROM pets WHERE id = 129", 30],
  ])("finds that the store %s", async (_, change, number) => {
    const database = await openDatabase();
    database.sqlite.exec(`CREATE TRIGGER later AFTER INSERT ON pets WHEN new.id = 129 BEGIN ${change}; END`);
    await expect(restore(database.store, fileOf(LINES), false, PART)).rejects.toThrow(
      `Verification failed: staging differs at line ${number}.`,
    );
  });
});

describe("restore --replace", () => {
  it("saves what is there next to the file, says how to go back, and only then replaces it", async () => {
    const { database, file, copies } = await setUp(OLD);
    database.onLoad = (apply, sql) => {
      expect(copies()).toEqual([text(OLD)]);
      expect(printed()).toMatch(
        /^Saved staging in .+before-staging-.+: 5 lines\.\nCallers get 503.+\nnpx .+bookmark 0/,
      );
      apply(sql);
    };
    await restore(database.store, file, true);
    expect(await saved(database)).toBe(text(LINES));
    print.mockClear();
    await restore(database.store, file, true);
    expect([printed(), database.loads.length]).toEqual(["staging already has the first 30 of 30 lines.", 1]);
  });

  it("changes nothing if the file is invalid, or if what is there cannot be saved", async () => {
    const { database, file, copies } = await setUp(OLD);
    await expect(restore(database.store, fileOf([LINE(1), "{"]), true)).rejects.toThrow("has invalid lines");
    database.sqlite.exec("UPDATE pets SET name = hex(zeroblob(975000)) WHERE id = 3");
    await expect(restore(database.store, file, true)).rejects.toThrow("Animal 3 is too large");
    expect([database.loads, copies()]).toEqual([[], []]);
  });

  const create = ({ sqlite }: Database, values: string) =>
    sqlite.exec(
      `INSERT INTO pets (name, category_id, status, idempotency_key) VALUES (${values}) ON CONFLICT DO NOTHING`,
    );
  const callerAdds = (database: Database) => create(database, "'Caller', 1, 'sold', NULL");
  const smokeTestRuns = (database: Database) => create(database, `'Smoke test', ${MAX}, 'sold', 'smoke test'`);

  type Interference = (database: Database, file: string) => unknown;
  const INTERFERENCES: Record<string, Interference> = {
    "a caller adds an animal": callerAdds,
    "it is killed": () => {
      throw new Failure("killed");
    },
    "earlier imports are applied again after a caller added an animal": (database) => {
      callerAdds(database);
      for (const sql of database.loads) expect(() => database.sqlite.exec(sql)).toThrow("malformed JSON");
    },
    "a restore of a different file finishes, and callers add animals up to the same id": async (database, file) => {
      await restore(database.store, file, true);
      callerAdds(database);
      callerAdds(database);
      smokeTestRuns(database);
    },
    "a smoke test runs": smokeTestRuns,
  };

  it.each(Object.entries(INTERFERENCES))("loses nothing if, at any moment, %s", async (title, interfere) => {
    for (let moment = 1, isReached = true; isReached; moment++) {
      const [{ database, file, copies }, other] = [await setUp(OLD), await setUp([], LINES.slice(0, 4))];
      let commands = 0;
      let added = "";
      database.onCommand = async () => {
        if (++commands < moment) return;
        database.onCommand = () => {};
        await interfere(database, other.file);
        added = rows(database).includes("Caller") ? '"name":"Caller"' : "";
      };
      const end = await restore(database.store, file, true, PART).catch((failure) => failure);
      if (title === "a smoke test runs") expect(end).toMatch(/^Restored/);
      database.onCommand = () => {};
      isReached = commands === moment;
      const kept = [await saved(database), ...copies(), ...other.copies()].join("");
      for (const line of [...OLD, added]) expect(kept).toContain(line);
      await restore(database.store, file, true, PART);
      expect((await saved(database)).startsWith(text(LINES))).toBe(true);
    }
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
