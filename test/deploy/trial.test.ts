// What a deployment drops, with SQLite, and what keeps it from dropping anything else.

import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { dropTables, trialDatabase } from "../../scripts/deploy/trial.ts";
import { readSections } from "../../scripts/environment.ts";

const DATABASE = "animal-store-staging-trial";

/** Empties a database in which these statements were run. Returns what is left in it. */
async function emptied(sql: string, transaction = ["BEGIN;", ";COMMIT"]): Promise<unknown[]> {
  const sqlite = new DatabaseSync(":memory:");
  sqlite.exec(sql);
  await dropTables("staging", DATABASE, async (args) => {
    expect(args.slice(0, -1)).toEqual(
      "d1 execute animal-store-staging-trial --env staging-trial --remote --json --command".split(" "),
    );
    const statement = String(args.at(-1));
    if (statement.startsWith("SELECT")) return JSON.stringify([{ results: sqlite.prepare(statement).all() }]);
    sqlite.exec(transaction.join(statement));
    return "[{}]";
  }).catch((failure: Error) => {
    expect(failure.message).toContain(`The database ${DATABASE} has more than 10 animals`);
  });
  return sqlite
    .prepare("SELECT name FROM sqlite_schema")
    .all()
    .map(({ name }) => name);
}

const PETS = "CREATE TABLE pets (id INTEGER PRIMARY KEY);";
const rows = (count: number) =>
  `INSERT INTO pets SELECT value FROM json_each('${JSON.stringify(Array.from({ length: count }, (_, id) => id))}');`;

describe("dropTables", () => {
  it("drops tables that refer to each other, views, and what has an unusual name", async () => {
    expect(
      await emptied(`${PETS}${rows(10)}
        CREATE INDEX by_id ON pets (id);
        CREATE TABLE a (id INTEGER PRIMARY KEY, b REFERENCES b (id));
        CREATE TABLE b (id INTEGER PRIMARY KEY, a REFERENCES a (id));
        INSERT INTO a VALUES (1, NULL); INSERT INTO b VALUES (1, 1); UPDATE a SET b = 1;
        CREATE VIRTUAL TABLE words USING fts5 (name);
        CREATE TABLE "a ""quoted"" name; DROP TABLE pets" (id);
        CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT);
        CREATE VIEW newest AS SELECT max(id) FROM pets`),
    ).toEqual(["sqlite_sequence"]);
  });

  it("drops children first, in case D1 runs each statement alone", async () => {
    const visits = "CREATE TABLE visits (pet INTEGER REFERENCES pets (id)); INSERT INTO visits VALUES (1);";
    expect(await emptied(`${PETS}${rows(2)}${visits}`, ["", ""])).toEqual([]);
  });

  it("does nothing without tables, and goes on where it was cut off", async () => {
    expect(await emptied("")).toEqual([]);
    expect(await emptied("CREATE TABLE d1_migrations (id)")).toEqual([]);
  });

  it("drops nothing, also of Cloudflare, if there are more animals than a test leaves", async () => {
    expect(await emptied(`${PETS}${rows(11)}`)).toEqual(["pets"]);
    expect(await emptied(`CREATE TABLE _cf_KV (key); ${PETS}`)).toEqual(["_cf_KV"]);
  });
});

describe("trialDatabase", () => {
  const database = (database_name: string, others: object = {}) => ({ d1_databases: [{ database_name, ...others }] });

  it("is the one that the trial alone has", () => {
    expect(trialDatabase("staging")).toBe(DATABASE);
  });

  it.each([
    ["the environment's database", { "staging-trial": database("animal-store-staging") }, "[env.staging-trial]"],
    ["an id", { "staging-trial": database(DATABASE, { database_id: "" }) }, "[env.staging-trial]"],
    [
      "two databases",
      { "staging-trial": { d1_databases: Array(2).fill({ database_name: DATABASE }) } },
      "[env.staging-trial]",
    ],
    ["no database", { "staging-trial": {} }, "[env.staging-trial]"],
    ["a name", { "staging-trial": { ...database(DATABASE), name: "animal-store-staging" } }, "[env.staging-trial]"],
    ["an environment with its name", { staging: { name: DATABASE } }, "[env.staging]"],
    [
      "an environment with any id",
      { staging: database("animal-store-staging", { database_id: "id" }) },
      "[env.staging]",
    ],
    ["no section", { "staging-trial": undefined }, "[env.staging-trial]"],
    ["an environment that has it, too", { staging: database(DATABASE) }, "[env.staging]"],
    ["a different trial that has it", { "production-trial": database(DATABASE) }, "[env.production-trial]"],
    ["a top level that has it", { "": database(DATABASE) }, "The top level"],
  ])("refuses %s", (_, sections, place) => {
    expect(() =>
      trialDatabase("staging", { ...readSections(), ...sections } as ReturnType<typeof readSections>),
    ).toThrow(`${place} in wrangler.toml must `);
  });
});
