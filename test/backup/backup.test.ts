// Saving a store and loading it again, by the commands, in copies of the project and between two databases of an account.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text as readText } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { end, launch } from "../command.ts";
import { type Cloudflare, startCloudflare } from "../deploy/cloudflare.ts";
import { copyProject, KEY, removeProject, startDev } from "../http/dev-server.ts";
import { send } from "../http/send.ts";

const SAMPLE = "scripts/sample.jsonl";

/** With an empty local store, which the first command makes. */
const template = copyProject();
const folders = [template];
beforeAll(() => void backup(template));
afterAll(() => folders.forEach(removeProject));

function copy(): string {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  folders.push(folder);
  cpSync(template, folder, { recursive: true });
  return folder;
}

type Command = "backup" | "restore";

/** Runs the command; it exits with `status`. */
function run(command: Command, folder: string, args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`scripts/backup/${command}.ts`, ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  return { status, output: stdout + stderr };
}

function restore(folder: string, lines: string | Buffer) {
  const file = join(folder, "stock.jsonl");
  writeFileSync(file, lines);
  return run("restore", folder, ["local", file]);
}

/** What a backup of the local store holds. */
function backup(folder: string): string {
  const file = join(folder, `backup-${readdirSync(folder).length}.jsonl`);
  expect(run("backup", folder, ["local", file])).toMatchObject({ status: 0 });
  return readFileSync(file, "utf8");
}

/** The file of the local database. */
function databaseIn(folder: string): string {
  const d1 = join(folder, ".wrangler/state/v3/d1/miniflare-D1DatabaseObject");
  const [name = ""] = readdirSync(d1).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name));
  return join(d1, name);
}

const MIN = "-9223372036854775808";
const MAX = "9223372036854775807";

/** Each as SQLite prints it. */
const EXTREMES = [
  `{"id":${MIN},"name":"least","categoryId":${MIN},"status":"available"}`,
  `{"id":-1,"name":"${"'".repeat(65_000)}","categoryId":-1,"status":"pending"}`,
  `{"id":0,"name":"${"\\u0001".repeat(10_000)}","categoryId":0,"status":"sold","idempotencyKey":"'"}`,
  `{"id":1,"name":"a\\u0000b\\u0000","categoryId":9007199254740993,"status":"sold","idempotencyKey":"${"~".repeat(255)}"}`,
  `{"id":2,"name":"\u2028;\u2029; -- \u0085\u007f\\r\\n\\t\\"'\\\\","categoryId":1,"status":"sold","idempotencyKey":"\\"a,\\\\ b\\""}`,
  `{"id":3,"name":"BEGIN TRANSACTION; COMMIT;","categoryId":1,"status":"available","idempotencyKey":"BEGIN TRANSACTION;"}`,
  `{"id":4,"name":"${" ".repeat(40_000)}\\u0000","categoryId":1,"status":"available"}`,
  `{"id":5,"name":"${"😀".repeat(16_000)}\ufeff","categoryId":1,"status":"available"}`,
  `{"id":9007199254740993,"name":"\\u0000","categoryId":1,"status":"available"}`,
  `{"id":${MAX},"name":"greatest","categoryId":${MAX},"status":"available"}`,
];

const text = (lines: string[]) => lines.map((line) => `${line}\n`).join("");

describe("backup and restore", () => {
  it("keep all that the service accepts, between a running service and an empty store", async () => {
    const [first, second] = [copy(), copy()];
    expect(restore(first, text(EXTREMES))).toMatchObject({ status: 0 });
    const server = await startDev(first);
    try {
      // What is loaded is what the service answers.
      const { text: list } = await send(`${server.origin}/v1/pets`, { headers: KEY });
      expect(list).toBe(`[${EXTREMES.map((line) => line.replace(/,"idempotencyKey":.*}$/, "}")).join(",")}]`);
      // A key that is loaded goes on to be known.
      const body = '{"name":"BEGIN TRANSACTION; COMMIT;","categoryId":1}';
      const headers = { ...KEY, "Content-Type": "application/json", "Idempotency-Key": "BEGIN TRANSACTION;" };
      expect(await send(`${server.origin}/v1/pets`, { method: "POST", headers, body })).toMatchObject({
        status: 201,
        text: expect.stringContaining('"id":3,'),
      });
      const saved = backup(first);
      expect(saved).toBe(text(EXTREMES));
      expect(restore(second, saved)).toMatchObject({ status: 0 });
      expect(backup(second)).toBe(saved);
    } finally {
      await server.stop();
    }
  });

  it("load the sample, by npm, into a fresh clone", () => {
    const folder = copyProject();
    folders.push(folder);
    const npm = (...args: string[]) =>
      spawnSync("npm", ["run", "--silent", ...args], {
        cwd: folder,
        encoding: "utf8",
        shell: process.platform === "win32",
      });
    expect(npm("restore", "--", "local", SAMPLE)).toMatchObject({ status: 0, stderr: "" });
    expect(npm("backup", "--", "local", "saved.jsonl")).toMatchObject({ status: 0, stderr: "" });
    expect(readFileSync(join(folder, "saved.jsonl"), "utf8")).toBe(readFileSync(SAMPLE, "utf8"));
  });

  it.each<[Command, string[]]>([
    ["backup", []],
    ["backup", ["local"]],
    ["backup", ["nowhere", "stock.jsonl"]],
    ["backup", ["toString", "stock.jsonl"]],
    ["restore", ["local", "stock.jsonl", "more"]],
    ["restore", ["stock.jsonl", "local"]],
  ])("say how %s is called, not so: %j", (command, args) => {
    const { status, output } = run(command, ".", args);
    expect({ status, output }).toEqual({
      status: 2,
      output: `usage: npm run ${command} -- <local|staging|production> <file>\n`,
    });
  });
});

describe("backup", () => {
  it("overwrites no file", () => {
    const folder = copy();
    const { status, output } = run("backup", folder, ["local", "README.md"]);
    expect(status).toBe(1);
    expect(output).toBe("README.md is there already, and a backup overwrites nothing.\n");
    expect(readFileSync(join(folder, "README.md"), "utf8")).toBe(readFileSync("README.md", "utf8"));
  });

  it("says where it cannot write", () => {
    const { status, output } = run("backup", copy(), ["local", "nowhere/stock.jsonl"]);
    expect(status).toBe(1);
    expect(output).toMatch(/^ENOENT: .*nowhere/);
  });

  it("leaves no file that looks whole when it is cut off", async () => {
    const folder = copy();
    const name = "x".repeat(60_000);
    // More than one page.
    const lines = Array.from({ length: 80 }, (_, id) => `{"id":${id},"name":"${name}","categoryId":1,"status":"sold"}`);
    expect(restore(folder, text(lines))).toMatchObject({ status: 0 });
    const child = launch(process.execPath, ["scripts/backup/backup.ts", "local", "saved.jsonl"], folder);
    const partial = join(folder, "saved.jsonl.partial");
    while (child.exitCode === null && !(existsSync(partial) && readFileSync(partial).length > 0)) await pause();
    await end(child);
    expect(existsSync(join(folder, "saved.jsonl"))).toBe(false);
    // And what it has left is in nobody's way.
    expect(run("backup", folder, ["local", "saved.jsonl"])).toMatchObject({ status: 0 });
    expect(readFileSync(join(folder, "saved.jsonl"), "utf8")).toBe(text(lines));
  });

  it("names the tables and columns that it does not cover", () => {
    const folder = copy();
    writeFileSync(
      join(folder, "migrations/9999_more.sql"),
      "CREATE TABLE toys (id INTEGER PRIMARY KEY) STRICT; ALTER TABLE pets ADD COLUMN toy_id INTEGER;",
    );
    for (const command of ["backup", "restore"] as const) {
      const { status, output } = run(command, folder, ["local", command === "backup" ? "stock.jsonl" : SAMPLE]);
      expect(status).toBe(1);
      expect(output).toMatch(/^No backup covers pets\.toy_id, toys\.id: .*scripts\/tables\.ts/);
    }
  });

  it("covers another table by one more entry in the list", () => {
    const folder = copy();
    writeFileSync(
      join(folder, "migrations/9999_more.sql"),
      "CREATE TABLE toys (id INTEGER PRIMARY KEY, name TEXT NOT NULL, color TEXT) STRICT;",
    );
    const tables = join(folder, "scripts/backup/tables.ts");
    const entry = `table(
      "toys",
      { id: "id", name: "name", color: { optional: "color" } },
      { id: Pet.shape.id, name: Pet.shape.name, color: z.optional(z.string()) },
    ),`;
    writeFileSync(tables, readFileSync(tables, "utf8").replace("TABLES = [", `$&${entry}`));
    const lines = text([
      `{"table":"toys","id":${MAX},"name":"ball","color":"red"}`,
      '{"table":"toys","id":1,"name":"bone"}',
      '{"id":1,"name":"Rex","categoryId":1,"status":"sold"}',
    ]);
    expect(restore(folder, lines)).toMatchObject({ status: 0 });
    expect(backup(folder).split("\n").toSorted()).toEqual(lines.split("\n").toSorted());
  });
});

describe("restore", () => {
  const folder = copy();
  const GOOD = '{"id":1,"name":"Rex","categoryId":1,"status":"sold","idempotencyKey":"k"}';

  it.each([
    ["no JSON", "{", "is not valid JSON"],
    ["an empty line", "", "is empty"],
    ["a list", "[]", "is no JSON object"],
    ["null", "null", "is no JSON object"],
    [
      "no name",
      '{"id":2,"categoryId":1}',
      "name is required and must be a string with at least one character that is not white space",
    ],
    [
      "several faults",
      '{"id":2,"name":" ","categoryId":1.5,"status":"gone"}',
      /name must be .*; categoryId must be .*; status must be /,
    ],
    ["an id beyond int64", '{"id":9223372036854775808,"name":"a","categoryId":1}', /^id must be an integer between/],
    [
      "null in place of nothing",
      '{"id":2,"name":"a","categoryId":1,"idempotencyKey":null}',
      /^idempotencyKey must be a string/,
    ],
    [
      "a key with a control character",
      '{"id":2,"name":"a","categoryId":1,"idempotencyKey":"\\t"}',
      /^idempotencyKey must be/,
    ],
    [
      "an unknown property",
      '{"id":2,"name":"a","categoryId":1,"Status":"sold"}',
      "unknown property Status: use id, name, categoryId, status, idempotencyKey",
    ],
    ["an unknown table", '{"table":"toys","id":2}', "there is no table toys"],
    ["the id of another line", '{"id":1,"name":"a","categoryId":1}', "has the id of line 1"],
    [
      "the key of another line",
      '{"id":2,"name":"a","categoryId":1,"idempotencyKey":"k"}',
      "has the idempotencyKey of line 1",
    ],
    ["no id where others have one", '{"name":"a","categoryId":1}', "has no id, which the lines before have"],
    ["a lone surrogate", '{"id":2,"name":"\\ud800","categoryId":1}', /^name must be well-formed Unicode/],
    [
      "a name that no request can hold",
      `{"id":2,"name":"${"a".repeat(67_000)}","categoryId":1}`,
      "is longer than any animal that the service accepts",
    ],
    ["text that is not UTF-8", Buffer.from('{"id":2,"name":"\xff","categoryId":1}', "latin1"), "is not valid UTF-8"],
  ])("names a line with %s", (_, line, fault) => {
    const { status, output } = restore(
      folder,
      Buffer.concat([Buffer.from(`${GOOD}\n`), Buffer.from(line), Buffer.from("\n")]),
    );
    expect(status).toBe(1);
    const [first, second = "", ...more] = output.trimEnd().split("\n");
    expect(first).toBe(`Nothing was loaded: ${join(folder, "stock.jsonl")} has wrong lines.`);
    expect(second).toMatch(/^line 2: /);
    expect(second.replace("line 2: ", "")).toEqual(typeof fault === "string" ? fault : expect.stringMatching(fault));
    expect(more).toEqual([]);
  });

  it("names the first of many wrong lines, and says how many more there are", () => {
    const { output } = restore(folder, text(Array.from({ length: 13 }, () => "{")));
    expect(output.trimEnd().split("\n").slice(-3)).toEqual([
      "line 9: is not valid JSON",
      "line 10: is not valid JSON",
      "and 3 more",
    ]);
  });

  it("says which file is not there", () => {
    const { status, output } = run("restore", folder, ["local", "nowhere.jsonl"]);
    expect(status).toBe(1);
    expect(output).toMatch(/^ENOENT: .*nowhere\.jsonl/);
  });

  it("numbers a stock without ids, takes what Windows and hands write, and then nothing more", () => {
    const folder = copy();
    const stock = '\ufeff{ "name": "Rex", "categoryId": 1e2 }\r\n{"status":"sold","categoryId":2,"name":"Tom"}';
    expect(restore(folder, stock)).toMatchObject({ status: 0 });
    const saved = text([
      '{"id":1,"name":"Rex","categoryId":100,"status":"available"}',
      '{"id":2,"name":"Tom","categoryId":2,"status":"sold"}',
    ]);
    expect(backup(folder)).toBe(saved);
    const { status, output } = restore(folder, GOOD);
    expect(status).toBe(1);
    expect(output).toBe(
      "local is not empty (2 rows), and a restore fills an empty store only. To empty it, end the service and remove .wrangler/state.\n",
    );
    expect(backup(folder)).toBe(saved);
  });

  it("stores nothing when a statement fails in the middle", () => {
    const folder = copy();
    trigger(folder, "SELECT RAISE(ABORT, 'refused here')");
    const { status, output } = run("restore", folder, ["local", SAMPLE]);
    expect(status).toBe(1);
    expect(output).toContain("refused here");
    expect(rowsIn(folder)).toBe(0);
  });

  it("stores nothing when it is ended in the middle", async () => {
    const folder = copy();
    trigger(folder, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
    const child = launch(process.execPath, ["scripts/backup/restore.ts", "local", SAMPLE], folder);
    while (child.exitCode === null && !isWriting(folder)) await pause();
    expect(child.exitCode).toBe(null);
    await end(child);
    while (isWriting(folder)) await pause();
    expect(rowsIn(folder)).toBe(0);
  });

  it("does not take for loaded what a store has made of it", () => {
    const folder = copy();
    using database = new DatabaseSync(databaseIn(folder));
    database.exec(
      "CREATE TRIGGER later AFTER INSERT ON pets WHEN new.id = 150 BEGIN UPDATE pets SET name = 'x' WHERE id = 150; END",
    );
    const { status, output } = run("restore", folder, ["local", SAMPLE]);
    expect(status).toBe(1);
    expect(output).toBe(`local now holds 301 rows, which are not the 301 of ${SAMPLE}.\n`);
  });
});

describe("between the databases of an account", () => {
  it("backup and restore are exact, and say what is missing", async () => {
    await using cloudflare = await startCloudflare();
    const folder = copy();
    const command = (name: Command, ...args: string[]) =>
      runAside(cloudflare, folder, `scripts/backup/${name}.ts`, args);
    const wrangler = (...args: string[]) => runAside(cloudflare, folder, "node_modules/wrangler/bin/wrangler.js", args);

    writeFileSync(join(folder, "extremes.jsonl"), text(EXTREMES));
    expect(await command("restore", "staging", "extremes.jsonl")).toMatchObject({ status: 1 });
    for (const environment of ["staging", "production"]) {
      await wrangler("d1", "create", `animal-store-${environment}`, "--update-config=false");
      await wrangler("d1", "migrations", "apply", "DB", "--env", environment, "--remote");
    }
    expect(await command("restore", "staging", "extremes.jsonl")).toMatchObject({ status: 0 });
    expect(await command("backup", "staging", "staging.jsonl")).toMatchObject({ status: 0 });
    expect(await command("restore", "production", "staging.jsonl")).toMatchObject({ status: 0 });
    expect(await command("backup", "production", "production.jsonl")).toMatchObject({ status: 0 });
    expect(readFileSync(join(folder, "production.jsonl"), "utf8")).toBe(text(EXTREMES));
    expect(await command("restore", "production", SAMPLE)).toMatchObject({
      status: 1,
      output: `production is not empty (${EXTREMES.length} rows), and a restore fills an empty store only.\n`,
    });
  });
});

/** Runs a script without holding up the stand-in, which lives in this process. */
async function runAside({ env }: Cloudflare, cwd: string, script: string, args: string[]) {
  const child = spawn(process.execPath, [script, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, errors, [status]] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    once(child, "close"),
  ]);
  return { status, output: output + errors };
}

function rowsIn(folder: string): unknown {
  using database = new DatabaseSync(databaseIn(folder));
  return database.prepare("SELECT count(*) AS rows FROM pets").get()?.["rows"];
}

/** Has the local database do something in the middle of the sample. */
function trigger(folder: string, sql: string): void {
  using database = new DatabaseSync(databaseIn(folder));
  database.exec(`CREATE TRIGGER middle BEFORE INSERT ON pets WHEN new.id = 150 BEGIN ${sql}; END`);
}

/** Whether somebody writes to the local database at this moment. */
function isWriting(folder: string): boolean {
  using database = new DatabaseSync(databaseIn(folder));
  try {
    database.exec("BEGIN IMMEDIATE; ROLLBACK");
    return false;
  } catch {
    return true;
  }
}

const pause = () => new Promise((done) => setTimeout(done, 50));
