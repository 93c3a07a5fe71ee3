// The commands as an operator runs them, by the real Wrangler: in a copy of the project, and with an account.

import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { connect } from "../../scripts/backup/connection.ts";
import { restore } from "../../scripts/backup/restore.ts";
import { wrangler } from "../../scripts/wrangler.ts";
import { startCloudflare } from "../deploy/cloudflare.ts";
import { copyProject, removeProject } from "../end-to-end/dev-server.ts";
import { launch, outcome } from "../processes.ts";

const WINDOWS = process.platform === "win32";
const SAMPLE = "scripts/backup/sample.jsonl";
const folder = copyProject();
// For temporary files, so that a test sees what is left of them.
const temporary = mkdtempSync(join(tmpdir(), "animal-store-"));
afterAll(() => [folder, temporary].forEach(removeProject));

const sample = readFileSync(SAMPLE, "utf8");
const saved = (file: string) => readFileSync(join(folder, file), "utf8");

/** Starts a command in the copy. Wrangler is big, so what is compiled of it is kept. */
function start(command: string, args: string[], env: NodeJS.Dict<string> = {}) {
  const cache = join(tmpdir(), "animal-store-compile-cache");
  const child = launch(command, args, folder, { TMPDIR: temporary, NODE_COMPILE_CACHE: cache, ...env });
  return { child, ended: outcome(child) };
}

const pause = () => new Promise((done) => setTimeout(done, 10));

const npm = (...args: string[]) => start("npm", ["run", "--silent", ...args]).ended;

describe("in a fresh clone", () => {
  it("the sample is loaded, and saved again", async () => {
    expect(await npm("restore", "--", "local", SAMPLE)).toEqual({
      status: 0,
      output: `Restored local from ${SAMPLE}: 301 lines, read back and identical.\n`,
      errors: "",
    });
    expect(await npm("backup", "--", "local", "saved.jsonl")).toEqual({
      status: 0,
      output: "Saved local in saved.jsonl: 301 lines.\n",
      errors: "",
    });
    expect(saved("saved.jsonl")).toBe(sample);
    if (!WINDOWS) expect(statSync(join(folder, "saved.jsonl")).mode & 0o777).toBe(0o600);
  });

  // Windows ends a process without telling it.
  it.skipIf(WINDOWS)("a closed terminal ends a command with everything that it started and wrote", async () => {
    const partial = () => readdirSync(folder).some((name) => name.endsWith(".partial"));
    const script = () => globSync(join(temporary, "wrangler-*/part.sql"));
    writeFileSync(join(folder, "longer.jsonl"), `${sample}{"id":302,"name":"Rex","categoryId":1}\n`);
    const moments = [
      { args: ["scripts/backup/backup.ts", "local", "cut.jsonl"], isReached: partial },
      { args: ["scripts/backup/restore.ts", "local", "longer.jsonl"], isReached: () => script().length > 0 },
    ];
    for (const { args, isReached } of moments) {
      const { child, ended } = start(process.execPath, args);
      const wrangler = () => spawnSync("pgrep", ["-P", String(child.pid)], { encoding: "utf8" }).stdout.trim();
      while (child.exitCode === null && !(isReached() && wrangler())) await pause();
      for (const file of script()) expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
      const started = wrangler();
      child.kill("SIGHUP");
      expect(await ended).toMatchObject({
        status: 129,
        errors: expect.stringMatching(/^Interrupted\. .*Run the same command again/m),
      });
      expect(readdirSync(temporary).filter((name) => name.startsWith("wrangler-"))).toEqual([]);
      expect([partial(), existsSync(join(folder, "cut.jsonl"))]).toEqual([false, false]);
      // A process that ended can stay listed, as Z, until its parent's parent takes note of it.
      const state = () => spawnSync("ps", ["-o", "stat=", "-p", started], { encoding: "utf8" }).stdout.trim();
      while (!/^Z?$/.test(state().slice(0, 1))) await pause();
    }
  });
});

describe("with an account", () => {
  it("a store is restored although imports break", async () => {
    await using cloudflare = await startCloudflare();
    cloudflare.databases.push({ uuid: "uuid", name: "animal-store-staging" });
    for (const file of readdirSync("migrations").sort()) {
      cloudflare.sqlite.exec(readFileSync(join("migrations", file), "utf8"));
    }
    cloudflare.importFaults.push("before", "after");
    for (const [name, value] of Object.entries(cloudflare.env)) vi.stubEnv(name, value);
    const store = await connect("staging", wrangler, 1);
    expect(await restore(store, SAMPLE)).toBe(`Restored staging from ${SAMPLE}: 301 lines, read back and identical.`);
    expect(cloudflare.requests.filter((request) => request.endsWith("/import")).length).toBe(6);
    expect(cloudflare.sqlite.prepare("SELECT count(*) AS rows FROM pets").get()).toEqual({ rows: 301 });
  });
});
