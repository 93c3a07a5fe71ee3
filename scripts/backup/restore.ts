// Loads a stock from a file into an empty store: `npm run restore -- <environment> <file>`. Every line is checked before
// anything is written, all is written or nothing, and at the end all is read back.

import { hash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { command, progress } from "./command.ts";
import { insertSql, type Line, parseLine, printLine, sqlText } from "./lines.ts";
import { readStock } from "./input.ts";
import { type Extent, execute, Failure, openStore, readStore } from "./store.ts";
import { TABLES, type Table } from "./tables.ts";

// D1 takes a statement of at most 100,000 bytes; this leaves room for what stands around the lines.
const LINES_BYTES = 95_000;

/** What tells one set of lines from another, in whatever order they come. */
class Tally {
  count = 0;
  sum = 0n;
  readonly extent: Extent = new Map();

  add({ table, row }: Line): void {
    this.count++;
    this.sum += hash("sha256", printLine({ table, row }), "buffer").readBigUInt64LE();
    const id = row["id"] as bigint;
    if (id >= (this.extent.get(table) ?? id)) this.extent.set(table, id);
  }
}

await command("restore", async (environment, file) => {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-restore-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const script = join(folder, "restore.sql");
  const sent = await translate(file, script);
  if (sent.count === 0) throw new Failure(`${file} is empty.`);
  const { rows } = await openStore(environment);
  if (rows > 0) {
    const remedy = environment === "local" ? " To empty it, end the service and remove .wrangler/state." : "";
    throw new Failure(`${environment} is not empty (${rows} rows), and a restore fills an empty store only.${remedy}`);
  }
  progress(`loading ${sent.count} lines`);
  await execute(environment, script);
  const stored = new Tally();
  for await (const lines of readStore(environment, sent.extent)) {
    for (const line of lines) stored.add(parseLine(line));
    progress(`read back ${stored.count} of ${sent.count} lines`);
  }
  if (stored.count !== sent.count || stored.sum !== sent.sum) {
    throw new Failure(`${environment} now holds ${stored.count} rows, which are not the ${sent.count} of ${file}.`);
  }
  return `Loaded ${file} into ${environment}: ${sent.count} lines, read back and found the same.`;
});

/** Writes the stock as SQL. */
async function translate(file: string, script: string): Promise<Tally> {
  const tally = new Tally();
  const output = openSync(script, "w");
  // Fails, and with it all, if a row has come in the meantime.
  for (const { name } of TABLES) writeFileSync(output, `INSERT INTO ${name} SELECT * FROM ${name} LIMIT 1;\n`);
  let batch: { table: Table; texts: string[]; bytes: number } | undefined;
  const flush = () => batch && writeFileSync(output, insertSql(batch.table, batch.texts));
  for await (const line of readStock(file)) {
    tally.add(line);
    const text = sqlText(line);
    const bytes = Buffer.byteLength(text) + 1;
    if (batch?.table !== line.table || batch.bytes + bytes > LINES_BYTES) {
      flush();
      batch = { table: line.table, texts: [], bytes: 0 };
    }
    batch.texts.push(text);
    batch.bytes += bytes;
    if (tally.count % 10_000 === 0) progress(`checked ${tally.count} lines`);
  }
  flush();
  closeSync(output);
  return tally;
}
