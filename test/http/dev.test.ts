// `npm run dev` as a newcomer meets it: in a fresh clone, by the README's own commands.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { copyProject, type DevServer, KEY, removeProject, startDev } from "./dev-server.ts";
import { send } from "./send.ts";

let server: DevServer;

beforeAll(async () => {
  server = await startDev(copyProject());
});

afterAll(async () => {
  await server.stop();
  removeProject(server.folder);
});

describe("npm run dev", () => {
  it("makes the local key from the example", () => {
    expect(readFileSync(join(server.folder, ".dev.vars"), "utf8")).toContain("API_KEY=local-key");
  });

  it("answers the README's first curl with what the README says", () => {
    const readme = readFileSync("README.md", "utf8");
    const curl = readme.match(/^curl .*$/m)?.[0].replace("http://localhost:8787", server.origin) ?? "";
    const expected = readme.match(/```json\n(.*)\n/)?.[1];
    expect(execFileSync("sh", ["-c", `${curl} --silent --show-error`], { encoding: "utf8", timeout: 30_000 })).toBe(
      expected,
    );
  });

  it("keeps animals, and a key of one's own, over a restart", async () => {
    const body = '{"name":"Kept","categoryId":1}';
    const headers = { ...KEY, "Content-Type": "application/json" };
    const { headers: created, text } = await send(`${server.origin}/v1/pets`, { method: "POST", headers, body });
    await server.stop();
    writeFileSync(join(server.folder, ".dev.vars"), "API_KEY=local-key,another\n");
    server = await startDev(server.folder);
    const kept = await send(server.origin + created.get("Location"), { headers: { Authorization: "Bearer another" } });
    expect(kept).toMatchObject({ status: 200, text });
  });
});
