// The service as a newcomer first runs it: in a fresh clone, with the README's own commands.

import { execFileSync } from "node:child_process";
import { globSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answers, copyProject, type DevServer, KEY, removeProject, startDev } from "../dev-server.ts";
import { run } from "../processes.ts";
import { send } from "./send.ts";
import { IS_DEPLOYED, LOCAL_ONLY } from "./service.ts";

let server: DevServer;

const write = (file: string, text: string) => writeFileSync(join(server.folder, file), text);

beforeAll(async () => {
  server = await startDev(copyProject());
});

afterAll(async () => {
  await server.stop();
  removeProject(server.folder);
});

describe.skipIf(IS_DEPLOYED)(`npm run dev${LOCAL_ONLY}`, () => {
  it("responds to the README's first curl as the README says", () => {
    const readme = readFileSync("README.md", "utf8");
    const line = readme.match(/^curl .*$/m)?.[0].replace("http://localhost:8787", server.origin) ?? "";
    const [command = "", ...args] = Array.from(
      line.matchAll(/'([^']*)'|"([^"]*)"|\S+/g),
      ([word, a, b]) => a ?? b ?? word,
    );
    const answer = execFileSync(command, [...args, "--silent", "--show-error"], { encoding: "utf8", timeout: 30_000 });
    expect(answer).toBe(readme.match(/```json\n(.*)\n/)?.[1]);
  });

  it("names the line of a syntax error; once it is repaired, applies new migrations and responds", async () => {
    const file = "src/pets/pet.ts";
    const source = readFileSync(file, "utf8");
    write(file, `${source}const broken: = 1;\n`);
    try {
      await expect.poll(server.output).toContain(`${file}:${source.split("\n").length}:`);
      write("migrations/9999_new.sql", "INSERT INTO pets (name, category_id, status) VALUES ('Migrated', 7, 'sold');");
    } finally {
      write(file, source);
    }
    await expect.poll(() => answers(`${server.origin}/v1/pets`)).toBe(true);
    const { text } = await send(`${server.origin}/v1/pets`, { headers: KEY });
    expect(text).toContain("Migrated");
  });

  it("prepares a changed key, an empty store after it is removed as the output says, and the site", async () => {
    const [, store = ""] = server.output().match(/stop the service and remove (\S+)\./) ?? [];
    await server.stop();
    rmSync(join(server.folder, store), { recursive: true });
    write(".dev.vars", "API_KEY=mine\n");
    const site = join(server.folder, "dist/site");
    const files = readdirSync(site);
    const { mtimeMs } = statSync(join(site, "index.html"));
    rmSync(join(site, "openapi.json"));
    write("dist/site/earlier.html", "");
    // What Wrangler runs before it starts the service.
    const output = await run("npm", ["run", "build"], server.folder, { WRANGLER_COMMAND: "dev" });
    expect(output).toContain("Its API key is mine (.dev.vars).");
    expect(globSync("**/*.sqlite", { cwd: join(server.folder, store, "v3/d1") })).not.toEqual([]);
    expect(readdirSync(site)).toEqual(files);
    // Only what differs is written, so two builds can run at once.
    expect(statSync(join(site, "index.html")).mtimeMs).toBe(mtimeMs);
  });
});
