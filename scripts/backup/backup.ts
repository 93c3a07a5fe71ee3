// Saves a store into a file, one row a line: `npm run backup -- <environment> <file>`. Callers may go on writing: it is the
// store as it was at the beginning. Under its name the file is whole; until then it is `<file>.partial`.

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { command, progress } from "./command.ts";
import { Failure, openStore, readStore } from "./store.ts";

await command("backup", async (environment, file) => {
  if (existsSync(file)) throw new Failure(`${file} is there already, and a backup overwrites nothing.`);
  const partial = `${file}.partial`;
  const output = openSync(partial, "w");
  process.once("exit", () => rmSync(partial, { force: true }));
  const { rows, extent } = await openStore(environment);
  let saved = 0;
  for await (const lines of readStore(environment, extent)) {
    writeFileSync(output, `${lines.join("\n")}\n`);
    saved += lines.length;
    progress(`${saved} of ${rows} lines`);
  }
  fsyncSync(output);
  closeSync(output);
  renameSync(partial, file);
  return `Saved ${environment} into ${file}: ${saved} lines.`;
});
