// The commands as an operator runs them, by the real Wrangler: in a copy of the project, and with an account.

import { globSync, mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { backup } from "../../scripts/backup/backup.ts";
import { insertSql } from "../../scripts/backup/rows.ts";
import { openStore } from "../../scripts/backup/wrangler-store.ts";
import { wrangler } from "../../scripts/wrangler.ts";
import { startCloudflare } from "../cloudflare.ts";
import { copyProject, removeProject } from "../dev-server.ts";
import { launch, outcome } from "../processes.ts";
import { linesIn } from "./files.ts";
import { openDatabase } from "./sqlite-store.ts";

const WINDOWS = process.platform === "win32";
const SAMPLE = "scripts/backup/sample.jsonl";
const project = copyProject();
// For temporary files, so that a test sees what is left of them.
const temporary = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => [project, temporary].forEach(removeProject));

const start = (command: string, ...args: string[]) => launch(command, args, project, { TMPDIR: temporary });
const npm = (name: string, ...args: string[]) => outcome(start("npm", "run", "--silent", name, "--", ...args));

describe("in a fresh clone", () => {
  it("the sample is loaded, and merged with itself", async () => {
    expect(await npm("restore", "local", SAMPLE)).toEqual({
      status: 0,
      output: `Restored local from ${SAMPLE}: 25 lines, read back and identical.\n`,
      errors: "",
    });
    expect(await npm("merge", SAMPLE, SAMPLE, "out.jsonl")).toMatchObject({
      status: 0,
      output: expect.stringMatching(/\nSaved out.jsonl: 25 lines.\n$/),
    });
  });

  it("wrong arguments are rejected, and control characters of a name are not printed", async () => {
    const usage = "The arguments are wrong.\nusage: npm run restore -- <local|staging|production> <file>\n";
    for (const args of [["prod", "f"], ["local"]]) {
      expect(await npm("restore", ...args)).toEqual({ status: 2, output: "", errors: usage });
    }
    const errors = "größe😀\\u{1b}[2J\\u{9b}1m\\u{202e} does not exist.\n";
    expect(await npm("restore", "local", "größe😀\u001b[2J\u009b1m\u202e")).toEqual({ status: 1, output: "", errors });
  });

  // Windows ends a process without telling it.
  it.skipIf(WINDOWS)("a closed terminal ends a backup, which leaves no files", async () => {
    const files = () => globSync([join(temporary, "wrangler-*"), join(project, "cut.jsonl*")]);
    const child = start(process.execPath, "--no-warnings", "scripts/backup/backup.ts", "local", "cut.jsonl");
    const ended = outcome(child);
    await expect.poll(() => files().length, { timeout: 60_000 }).toBe(2);
    child.kill("SIGHUP");
    const errors = "Interrupted. Nothing was saved. Run the same command again.\n";
    expect(await ended).toEqual({ status: 129, output: "", errors });
    expect(files()).toEqual([]);
  });
});

it("with an account, animals are stored although imports break, and saved; other failures say what to do", async () => {
  await using cloudflare = await startCloudflare();
  for (const [name, value] of Object.entries(cloudflare.env)) vi.stubEnv(name, value);
  expect(await npm("backup", "staging", "cut.jsonl")).toMatchObject({
    status: 1,
    errors: expect.stringMatching(/The database animal-store-staging does not (.|\n)+\nNothing was saved\. .+\n$/),
  });

  cloudflare.databases["animal-store-staging"] = (await openDatabase()).sqlite;
  cloudflare.importFaults.push("before", "after");
  const store = await openStore("staging", wrangler, 1);
  const [line, file] = ['{"id":1,"name":"Rex","categoryId":1,"status":"sold"}', join(project, "saved.jsonl")];
  await store.load([...insertSql([line])].join(""));
  expect(cloudflare.requests.filter((request) => request.endsWith("/import")).length).toBe(6);
  expect(await store.bookmark()).toMatch(/^0{8}-/);
  expect(await store.isClosed()).toBe(false);
  cloudflare.setSecrets("animal-store-staging", { MAINTENANCE: "" });
  expect(await store.isClosed()).toBe(true);
  expect(await backup(store, file)).toBe(`Saved staging in ${file}: 1 lines.`);
  expect(linesIn(file)).toEqual([line]);
  if (!WINDOWS) expect(statSync(file).mode & 0o777).toBe(0o600);
});
