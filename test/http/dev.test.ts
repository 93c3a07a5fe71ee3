// The service as a newcomer meets it: in a fresh clone, by the README's own commands.

import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run } from "../command.ts";
import { copyProject, type DevServer, KEY, removeProject, start } from "./dev-server.ts";
import { send } from "./send.ts";

let server: DevServer;

const startAgain = (folder: string) => start(folder, "npm", "run", "dev", "--");

beforeAll(async () => {
  server = await startAgain(copyProject());
});

afterAll(async () => {
  await server.stop();
  removeProject(server.folder);
});

describe("npm run dev", () => {
  it("answers the README's first curl with what the README says", () => {
    const readme = readFileSync("README.md", "utf8");
    const line = readme.match(/^curl .*$/m)?.[0].replace("http://localhost:8787", server.origin) ?? "";
    const [command = "", ...args] = Array.from(
      line.matchAll(/'([^']*)'|"([^"]*)"|\S+/g),
      ([word, a, b]) => a ?? b ?? word,
    );
    const answer = execFileSync(command, [...args, "--silent", "--show-error"], { encoding: "utf8", timeout: 30_000 });
    expect(answer).toBe(readme.match(/```json\n(.*)\n/)?.[1]);
  });

  it("keeps animals, and a key of one's own, over a restart", async () => {
    const created = await create();
    await server.stop();
    writeFileSync(join(server.folder, ".dev.vars"), "API_KEY=local-key,another\n");
    server = await startAgain(server.folder);
    const location = server.origin + created.headers.get("Location");
    const kept = await send(location, { headers: { Authorization: "Bearer another" } });
    expect(kept).toMatchObject({ status: 200, text: created.text });
  });

  it("begins with an empty store after its folder was removed, as it tells one to", async () => {
    await server.stop();
    rmSync(join(server.folder, ".wrangler/state"), { recursive: true });
    server = await startAgain(server.folder);
    expect(await send(`${server.origin}/v1/pets`, { headers: KEY })).toMatchObject({ status: 200, text: "[]" });
    expect((await create()).headers.get("Location")).toBe("/v1/pets/1");
  });

  it("fails where its port is taken, because the README's curl would reach another program there", async () => {
    // Where another program has it, it is taken as well.
    const other = createServer()
      .on("error", () => undefined)
      .listen(8787);
    try {
      await expect(run("npm", ["run", "dev"], server.folder)).rejects.toThrow(/Address already in use.*--port/s);
    } finally {
      other.close();
    }
  });
});

describe("npm test", () => {
  it("runs, says nothing but what fails, and points at its line", async () => {
    const folder = copyProject();
    try {
      writeFileSync(join(folder, "test/worker/failing.test.ts"), FAILING);
      const failure = await run("npm", ["test", "--", "test/worker/failing.test.ts"], folder).catch(String);
      const output = stripVTControlCharacters(failure);
      expect(output).toContain("test/worker/failing.test.ts:8:40");
      expect(output).not.toMatch(/secret|source ?map/i);
    } finally {
      removeProject(folder);
    }
  });
});

// Types, of which nothing is left where it runs, would shift its lines.
const FAILING = `import { expect, it } from "vitest";

interface Wrong {
  reason: string;
}

const wrong: Wrong = { reason: "on purpose" };
it("fails", () => expect(wrong.reason).toBe(""));
`;

function create() {
  const headers = { ...KEY, "Content-Type": "application/json" };
  return send(`${server.origin}/v1/pets`, { method: "POST", headers, body: '{"name":"Kept","categoryId":1}' });
}
