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

it("passes against the service, and says which animal it adds", async () => {
  const pets = `${inject("origin")}/v1/pets`;
  const headers = { ...KEY, "Content-Type": "application/json" };
  const before = await send(pets, { method: "POST", headers, body: '{"name":"Before","categoryId":1}' });

  const { status, output } = smoke([`${inject("origin")}/v1`], "local-key");
  expect(output).toMatch(/12 passed, 12 total/);
  expect(output).not.toContain("local-key");
  expect(status).toBe(0);

  const [, name] = output.match(/named "(Smoke test [^"]+)"/) ?? [];
  const { text } = await send(`${pets}?limit=100&after=${JSON.parse(before.text).id}`, { headers });
  expect(text.split(`"name":"${name}","categoryId":0,"status":"sold"`).length).toBe(2);
});

it("fails with a wrong key", () => {
  expect(smoke([`${inject("origin")}/v1`], "wrong").status).not.toBe(0);
});

it("fails where there is no service", () => {
  expect(smoke([`${inject("origin")}/v2`], "local-key").status).not.toBe(0);
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
