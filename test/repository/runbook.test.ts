// The commands for operators: what Wrangler has of them, and their SQL as one would run it, by procedure and in order.

import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { experimental_getWranglerCommands as getWranglerCommands } from "wrangler";
import { backupLines } from "../../scripts/backup.ts";
import { PATIENCE } from "../../scripts/wait-for-commit.ts";
import { TABLES } from "../tables.ts";

const runbook = ["docs/OPERATIONS.md", "docs/SETUP.md"].map((page) => readFileSync(page, "utf8")).join("\n");

/** What an operator fills in. For <statement>, the runbook has some: this one names a trigger. */
const VALUES: Record<string, string | undefined> = {
  caller: "API_KEY_SHOP",
  id: "1",
  ids: "1, 2",
  migration: "0002_pets_stay.sql",
  name: "Ada",
  reason: "A test",
  statement: /`(DROP TRIGGER \w+)`/.exec(runbook)?.[1],
  time: "1970-01-01 00:00:00",
};

/** A database with two animals, and the correction of one that was removed. */
function openDatabase(): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  database.exec(`${TABLES}
    INSERT INTO pets (name, category_id, status, created_by)
      VALUES ('Rex', 7, 'sold', 'API_KEY_SHOP'), ('Rex', 7, 'sold', 'API_KEY_SHOP');
    INSERT INTO corrections (pet_id, reason) VALUES (3, 'A test');
    CREATE TABLE d1_migrations (name TEXT);
    INSERT INTO d1_migrations VALUES ('0002_pets_stay.sql');`);
  return database;
}

/** What `grep` finds in a backup for an animal that was removed. */
function removedLine(): string {
  const database = openDatabase();
  database.exec("INSERT INTO pets (id, name, category_id, status) VALUES (3, 'Ada', 7, 'sold')");
  const lines = [...backupLines("staging", (sql) => database.prepare(sql).all())];
  const [, pattern = ""] = /grep -E '(.*)' <backup>/.exec(runbook) ?? [];
  return lines.filter((line) => RegExp(pattern.replaceAll("<id>", "3")).test(line)).join("");
}

const procedures = runbook.split(/^##+ /m).flatMap((text) => {
  const found = text.matchAll(/^ *`?npx .*--command "(.*)"|^```sql\n(.*)$/gm);
  const commands = Array.from(found, ([, command, sql = ""]) => command ?? sql);
  return commands.length === 0 ? [] : [{ procedure: text.replace(/\n[\s\S]*/, ""), commands }];
});

it.each(procedures)("$procedure: each statement finds or changes rows, or changes the schema", ({ commands }) => {
  const database = openDatabase();
  const state = database.prepare("SELECT total_changes() || ' ' || schema_version AS state FROM pragma_schema_version");
  for (const command of commands) {
    const before = state.get()?.["state"];
    const sql = command.replaceAll(/<(\w+)>/g, (_, name) => VALUES[name] ?? `<${name}>`);
    const rows = database.prepare(sql.replace("$(cat <lines>)", removedLine)).all();
    expect(rows.length > 0 || state.get()?.["state"] !== before, command).toBe(true);
  }
});

const wrangler = getWranglerCommands();

/** Whether Wrangler has a command, with all of its flags. */
function isKnown(command: string): boolean {
  let node = wrangler.registry;
  const words = command.replaceAll(/"[^"]*"/g, "").split(/\s+/);
  for (const word of words) node = node.subtree.get(word) ?? node;
  if (node.definition?.type !== "command") return false;
  const flags = { ...wrangler.globalFlags, ...node.definition.args };
  return words.every((word) => !word.startsWith("--") || word.replaceAll(/^--|=.*/g, "") in flags);
}

it("the commands of Wrangler, and their flags, are those of this version", () => {
  const commands = Array.from(runbook.matchAll(/npx wrangler ([^`\n]+)/g), ([, command = ""]) => command);
  expect(commands).not.toEqual([]);
  expect(commands.filter((command) => !isKnown(command))).toEqual([]);
});

it("names the minutes that a deployment waits, which a changed secret takes, too", () => {
  const minutes = Array.from(runbook.matchAll(/[Ww]ait (\S+) minutes|[Aa]fter (\S+) minutes/g), ([, a, b]) => a ?? b);
  expect(new Set(minutes)).toEqual(new Set([["no", "one", "two", "three", "four", "five"][PATIENCE / 60_000]]));
});
