import { spawnSync } from "node:child_process";
import { expect, inject, it } from "vitest";
import { KEY } from "./dev-server.ts";
import { send } from "./send.ts";

const smoke = (base: string[], API_KEY: string) => {
  const env = { ...process.env, API_KEY };
  const { status, stdout, stderr } = spawnSync("npm", ["run", "smoke", "--", ...base], {
    env,
    encoding: "utf8",
    timeout: 30_000,
  });
  return { status, output: stdout + stderr };
};

it("passes against the service, and adds one animal, ever", async () => {
  for (const base of [`${inject("origin")}/v1`, `${inject("origin")}/v1/`]) {
    const { status, output } = smoke([base], "local-key");
    expect(output).toContain("ok: refuses what is no request of its interface");
    expect(output).not.toContain("local-key");
    expect(status).toBe(0);
  }
  const [, id] = smoke([`${inject("origin")}/v1`], "local-key").output.match(/"id":(\d+)/) ?? [];
  const { text } = await send(`${inject("origin")}/v1/pets?limit=100&after=${Number(id) - 1}`, { headers: KEY });
  expect(text.split('"name":"Smoke test"').length).toBe(2);
});

it.each([
  ["a wrong key", "/v1", "wrong", "POST /pets: the key is none of the environment's keys (401)."],
  ["no service", "/v2", "local-key", "GET /pets: 401 was expected, and 404 answered"],
])("fails with %s, and says why", (_, path, key, message) => {
  const { status, output } = smoke([inject("origin") + path], key);
  expect(output).toContain(`The smoke test failed: ${message}`);
  expect(status).toBe(1);
});

it.each([
  [[], "local-key"],
  [["nowhere"], "local-key"],
  [["http://localhost/v1"], ""],
])("says how it is called, to %j with the key %s", (base, key) => {
  const { status, output } = smoke(base, key);
  expect(status).toBe(2);
  expect(output).toContain("usage: API_KEY=<key> npm run smoke -- <base URL");
});
