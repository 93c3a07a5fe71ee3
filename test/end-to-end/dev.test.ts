// `npm run dev`, with the README's own commands. The shared service is that of a fresh clone; a second one, with a key
// of its own, meets what a maintainer does while it runs.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { copyProject, removeProject, startDev } from "../dev-server.ts";
import { launch, outcome } from "../processes.ts";
import { IS_DEPLOYED, LOCAL_ONLY, ORIGIN } from "./service.ts";

const NO_CURL = spawnSync("curl", ["--version"]).error ? " (SKIPPED: curl is not installed)" : "";

describe.skipIf(IS_DEPLOYED)(`npm run dev${LOCAL_ONLY}`, () => {
  it.skipIf(NO_CURL)(`responds to the README's first curl as the README says${NO_CURL}`, () => {
    const readme = readFileSync("README.md", "utf8");
    const line = readme.match(/^curl .*$/m)?.[0].replace("http://localhost:8787", ORIGIN) ?? "";
    const [command = "", ...args] = Array.from(
      line.matchAll(/'([^']*)'|"([^"]*)"|\S+/g),
      ([word, a, b]) => a ?? b ?? word,
    );
    const answer = execFileSync(command, [...args, "--silent", "--show-error"], { encoding: "utf8", timeout: 30_000 });
    const [, shown = ""] = readme.match(/```json\n(.*)\n/) ?? [];
    // Each animal has a different id.
    expect(answer.replace(/\d+/, "")).toBe(shown.replace(/\d+/, ""));
  });

  describe("in a folder with a key and an earlier build", () => {
    let folder: string;
    let server: Awaited<ReturnType<typeof startDev>>;
    beforeAll(async () => {
      folder = copyProject();
      write(".dev.vars", "API_KEY=key-of-a-maintainer\n");
      mkdirSync(join(folder, "dist/site"), { recursive: true });
      write("dist/site/earlier.html", "");
      server = await startDev(folder);
    });
    afterAll(async () => {
      await server.stop();
      removeProject(folder);
    });
    const write = (file: string, text: string) => writeFileSync(join(folder, file), text);

    it("keeps the key, names the folder to remove for an empty store, and removes what is not built any more", () => {
      expect(server.output()).toContain("Its API key is key-of-a-maintainer (.dev.vars).");
      expect(existsSync(join(folder, "dist/site/earlier.html"))).toBe(false);
      const [, store = ""] = server.output().match(/stop the service and remove (\S+)\./) ?? [];
      const state = globSync("v3/d1/**/*.{sqlite,txt}", { cwd: join(folder, store) });
      expect(state).toEqual(expect.arrayContaining([expect.stringMatching("sqlite"), expect.stringMatching("txt")]));
    });

    const list = async () => {
      const headers = { Authorization: "Bearer key-of-a-maintainer" };
      // A request that arrives while the runtime restarts may never be answered.
      const options = { headers, signal: AbortSignal.timeout(2_000) };
      return fetch(`${server.origin}/v1/pets`, options).then((response) => response.text(), String);
    };

    it("applies a new migration", async () => {
      write("migrations/9999_new.sql", "INSERT INTO pets (name, category_id, status) VALUES ('Migrated', 7, 'sold');");
      await expect.poll(list).toContain("Migrated");
    });

    it("names the line of a syntax error, and serves what is repaired", async () => {
      const file = "src/pets/store.ts";
      const source = readFileSync(file, "utf8");
      const builtAt = () => statSync(join(folder, "dist/site/index.html")).mtimeMs;
      const before = builtAt();
      write(file, `${source}const broken: = 1;\n`);
      await expect.poll(server.output).toContain(`${file}:${source.split("\n").length}:`);
      write(file, source.replace("'name', name", "'name', upper(name)"));
      await expect.poll(list).toContain("MIGRATED");
      // Only what differs is written, so two builds can run at once.
      expect(builtAt()).toBe(before);
    });

    it("says so if the service ignores the key", async () => {
      write(".dev.vars", "API_KEY=short\n");
      const build = launch("node", ["scripts/build/build.ts"], folder, { WRANGLER_COMMAND: "dev" });
      expect((await outcome(build)).output).toContain("In .dev.vars: Secret API_KEY is ignored: a key has 16 to 512 ");
    });
  });
});
