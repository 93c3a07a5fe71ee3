// The store of an environment, by Wrangler's commands: `d1 execute` works the same for the local store and for those of
// the account.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { applyLocalMigrations, LOCAL } from "../environment.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";
import { columnOf, PROPERTIES } from "./lines.ts";

export type Store = Awaited<ReturnType<typeof openStore>>;

/**
 * Throws unless the store has exactly the columns that a backup covers. Whatever fails is tried again, as retry() does
 * with this `pause`. Throws WranglerFailed.
 */
export async function openStore(environment: string, run: typeof wrangler = wrangler, pause = 1000) {
  const isLocal = environment === LOCAL;
  const flags = isLocal ? ["--local"] : ["--env", environment, "--remote"];
  // In a fresh clone this creates the local store. A deployment updates those of the account.
  if (isLocal) await applyLocalMigrations();
  // Only its owner can read this folder.
  const folder = mkdtempSync(join(tmpdir(), "wrangler-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const part = join(folder, "part.sql");
  const execute = ["d1", "execute", "DB", ...flags, "--json"];

  /** The JSON that a command prints. */
  const read = async (...args: string[]) => JSON.parse(await retry(() => run(args), pause));
  const section = ["--env", environment, "--json"];

  const store = {
    environment,
    isLocal,

    /** The texts that a SELECT returns, row by row. */
    async query(sql: string): Promise<string[]> {
      const [{ results }] = await read(...execute, "--command", sql);
      return results.flatMap(Object.values).map(String);
    },

    /** Runs statements that can be repeated. In an account this is an import, during which D1 rejects all queries. */
    async load(sql: string): Promise<void> {
      await retry(() => {
        // Different each time, because Wrangler does not run a file again that D1 has received before.
        writeFileSync(part, `-- ${randomUUID()}\n${sql}`);
        return run([...execute, "--file", part]);
      }, pause);
    },

    /** The current point in time of a database in an account. */
    async bookmark(): Promise<string> {
      return (await read("d1", "time-travel", "info", "DB", ...section)).bookmark;
    },

    /**
     * Whether the service of an environment in an account is closed to callers: whether each version that serves has
     * the secret MAINTENANCE. (`secret list` tells of the latest version, which need not serve.)
     */
    async isClosed(): Promise<boolean> {
      const deployment = await read("deployments", "status", ...section).catch((failure: Error) => {
        if (!NOT_DEPLOYED.test(failure.message)) throw failure;
      });
      for (const { version_id } of deployment?.versions ?? []) {
        const { resources } = await read("versions", "view", version_id, ...section);
        if (!resources.bindings.some(({ name }: { name: string }) => name === "MAINTENANCE")) return false;
      }
      return deployment !== undefined;
    },
  };
  const stored = (await store.query(STORED_COLUMNS)).sort().join(", ");
  const covered = PROPERTIES.map((property) => `pets.${columnOf(property)}`)
    .sort()
    .join(", ");
  if (stored === covered) return store;
  throw new Error(`${environment} has the columns ${stored || "(none)"}, but this version covers ${covered}.
Run this at the commit that the page of ${environment} names: "Save the store" in docs/OPERATIONS.md.`);
}

/** The columns of all tables of a store, such as pets.id. */
const STORED_COLUMNS = `SELECT tables.name || '.' || columns.name AS name
  FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
  WHERE tables.type = 'table' AND tables.name <> 'd1_migrations'
  AND tables.name NOT GLOB '_cf_*' AND tables.name NOT GLOB 'sqlite_*'`;

// What Wrangler prints if the Worker does not exist, or was never deployed.
const NOT_DEPLOYED = /code: 10007|has no deployments/;

/**
 * Tries what can be repeated until Wrangler does not fail: again after `pause` milliseconds, then after twice as many.
 * Not if that cannot help. Throws the last failure.
 */
async function retry<T>(work: () => Promise<T>, pause: number, tries = 5): Promise<T> {
  try {
    return await work();
  } catch (failure) {
    if (tries === 1 || !(failure instanceof WranglerFailed)) throw failure;
    if (failure.hasRemedy || NOT_DEPLOYED.test(failure.message)) throw failure;
    await setTimeout(pause);
    return retry(work, pause * 2, tries - 1);
  }
}
