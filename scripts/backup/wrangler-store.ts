// The store of an environment: `wrangler d1 execute` works the same for the local store and for those of the account.
// Rows arrive as JSON text that SQLite prints, because Wrangler rounds integers beyond 2^53.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { INT64 } from "../../src/values/int64.ts";
import { parseJson, printJson } from "../../src/values/json.ts";
import { applyLocalMigrations, LOCAL } from "../environment.ts";
import { WranglerFailed, wrangler } from "../wrangler.ts";
import { COVERED_COLUMNS, ROW_JSON, STORED_COLUMNS } from "./lines.ts";

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
  const repeat: typeof wrangler = (args) => retry(() => run(args), pause);

  const store = {
    environment,
    isLocal,

    /** The texts that a SELECT returns, row by row. */
    async query(sql: string): Promise<string[]> {
      const [{ results }] = JSON.parse(await repeat([...execute, "--command", sql]));
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
      const info = ["d1", "time-travel", "info", "DB", "--env", environment, "--json"];
      return JSON.parse(await repeat(info)).bookmark;
    },

    /**
     * Whether the service of an environment in an account is closed to callers: whether the versions that serve have
     * the secret MAINTENANCE. (`secret list` is about the latest version, which need not serve.)
     */
    async isClosed(): Promise<boolean> {
      const of = ["--json", "--env", environment];
      const status = await repeat(["deployments", "status", ...of]).catch((failure: Error) => {
        if (failure.message.includes("code: 10007")) return undefined; // There is no Worker.
        throw failure;
      });
      const { versions = [] }: { versions?: { version_id: string }[] } = JSON.parse(status ?? "{}");
      for (const { version_id } of versions) {
        const { resources } = JSON.parse(await repeat(["versions", "view", version_id, ...of]));
        if (!resources.bindings.some(({ name }: { name: string }) => name === "MAINTENANCE")) return false;
      }
      return versions.length > 0;
    },
  };
  const stored = (await store.query(STORED_COLUMNS)).join(", ");
  const covered = COVERED_COLUMNS.map((column) => `pets.${column}`).join(", ");
  if (stored === covered) return store;
  throw new Error(`${environment} has the columns ${stored || "(none)"}, but this version covers ${covered}.
If columns are missing, run: npx wrangler d1 migrations apply DB ${flags.join(" ")}
If there are more, run this from a commit that covers them (scripts/backup/lines.ts).`);
}

/**
 * Tries what can be repeated until Wrangler does not fail: again after `pause` milliseconds, then after twice as many.
 * Not if the failure has a remedy. Throws the last failure.
 */
async function retry<T>(work: () => Promise<T>, pause: number, tries = 5): Promise<T> {
  try {
    return await work();
  } catch (failure) {
    if (tries === 1 || !(failure instanceof WranglerFailed) || failure.hasRemedy) throw failure;
    await setTimeout(pause);
    return retry(work, pause * 2, tries - 1);
  }
}

// A page is one string, which D1 limits to 2,000,000 bytes. Starting Wrangler for each takes a second.
const PAGE_BYTES = 1_000_000;
// They always fit: the longest have 6,800 bytes, 1,000 control characters, as \u0001, and a key of 255 backslashes.
const SAFE_ROWS = 250;

const parseRow = (text: string) => parseJson(text) as { id: bigint };

/**
 * The lines of all rows, in ascending order of id and up to the greatest id at the start: the same whatever callers add
 * meanwhile, because ids rise and nothing changes. D1 bills every row that is read, so a page has a plain LIMIT. Throws
 * if the store is replaced meanwhile: if rows are gone, or the first or the last one has changed.
 */
export async function* readRows({ environment, query }: Store): AsyncGenerator<string, undefined> {
  const replaced = `Something else has changed or removed animals of ${environment} meanwhile.
Run the same command again.`;
  const firstAnd = (last: bigint | string) =>
    query(`SELECT ${ROW_JSON} FROM pets WHERE id IN ((SELECT min(id) FROM pets), ${last}) ORDER BY pets.id`);
  const atStart = await firstAnd("(SELECT max(id) FROM pets)");
  const newest = atStart.at(-1);
  if (newest === undefined) return;
  const last = parseRow(newest).id;
  let next = INT64.minimum;
  let rows = SAFE_ROWS;
  const readPage = (limit: number) =>
    query(`SELECT coalesce(group_concat(text, char(10)), '') FROM (
      SELECT ${ROW_JSON} AS text FROM pets WHERE id BETWEEN ${next} AND ${last} ORDER BY pets.id LIMIT ${limit})`);
  while (next <= last) {
    const [page] = await readPage(rows).catch((failure: Error) => {
      if (!failure.message.includes("too big")) throw failure;
      // The names have suddenly become longer.
      return readPage(SAFE_ROWS);
    });
    if (!page) throw new Error(replaced);
    const texts = page.split("\n");
    for (const text of texts) {
      const row = parseRow(text);
      yield printJson(row);
      next = row.id + 1n;
    }
    rows = Math.ceil((texts.length * PAGE_BYTES) / Buffer.byteLength(page));
  }
  if ((await firstAnd(last)).join() !== atStart.join()) throw new Error(replaced);
}
