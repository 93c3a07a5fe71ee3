// The service as a newcomer first runs it: in a fresh clone, with the README's own commands.

import { execFileSync } from "node:child_process";
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

  it("keeps animals and a changed key even if it is killed, and rebuilds without a warning", async () => {
    const created = await create();
    await server.stop("SIGKILL");
    writeFileSync(join(server.folder, ".dev.vars"), "API_KEY=local-key,mine\n");
    server = await startAgain(server.folder);
    const location = server.origin + created.headers.get("Location");
    const kept = await send(location, { headers: { Authorization: "Bearer mine" } });
    expect(kept).toMatchObject({ status: 200, text: created.text });
    appendFileSync(join(server.folder, "src/index.ts"), "\n");
    await expect.poll(server.output, { timeout: 20_000 }).toContain("Local server updated");
    expect(server.output()).not.toContain("WARNING");
  });

  it("starts with an empty store after the store is removed as the output says", async () => {
    const [, store = ""] = server.output().match(/stop the service and remove (\S+)\./) ?? [];
    await server.stop();
    rmSync(join(server.folder, store), { recursive: true });
    server = await startAgain(server.folder);
    expect(await send(`${server.origin}/v1/pets`, { headers: KEY })).toMatchObject({ status: 200, text: "[]" });
    expect((await create()).headers.get("Location")).toBe("/v1/pets/1");
  });

  it("fails if its port is in use, and warns that another service is running in the folder", async () => {
    // If a different program already listens there, the port is in use as well.
    const other = createServer()
      .on("error", () => undefined)
      .listen(8787);
    try {
      const message = await run("npm", ["run", "dev"], server.folder).catch(String);
      expect(message).toMatch(/Address already in use.*--port/s);
      // Without `ps`, as on Windows, the other service is not found.
      if (process.platform !== "win32") {
        expect(message).toMatch(
          /WARNING: another service \(process \d+\) is running in this folder\..*stop one of them/s,
        );
      }
    } finally {
      other.close();
    }
  });
});

describe("npm run build", () => {
  it("can run twice at the same moment, and leaves nothing of an earlier build", async () => {
    const site = join(server.folder, "dist/site");
    const build = () => run("npm", ["run", "build"], server.folder);
    for (let round = 0; round < 3; round++) {
      rmSync(site, { recursive: true });
      await Promise.all([build(), build(), build()]);
    }
    const files = readdirSync(site, { recursive: true });
    expect(files).toContain("index.html");
    writeFileSync(join(site, "earlier.html"), "");
    await Promise.all([build(), build()]);
    expect(readdirSync(site, { recursive: true })).toEqual(files);
  });
});

describe("npm test", () => {
  it("prints only what fails, with its line", async () => {
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

// The types are removed before it runs, which must not shift its lines.
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
