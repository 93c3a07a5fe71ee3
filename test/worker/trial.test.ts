import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { TRIAL_HEADER } from "../../scripts/deploy/gate.ts";
import trial from "../../src/trial.ts";
import { ORIGIN } from "./call.ts";

const KEY = "key-of-one-deployment";

/** A request to a trial Worker with this key, whose callers have the keys of the tests. */
const send = (presented: string | undefined, request: RequestInit = {}, bindings: object = { API_KEY: KEY }) =>
  trial.fetch(
    new Request(`${ORIGIN}/v1/pets`, {
      ...request,
      headers: { Authorization: "Bearer second-key", ...(presented !== undefined && { [TRIAL_HEADER]: presented }) },
    }),
    { ...env, ...bindings },
  );

async function expectClosed(response: Response): Promise<void> {
  expect([response.status, [...response.headers], await response.text()]).toEqual([404, [], ""]);
}

it("lets a request through only with its key", async () => {
  for (const method of ["GET", "POST", "HEAD", "OPTIONS"]) {
    for (const presented of [undefined, "", "wrong", "second-key", `${KEY}!`, KEY.slice(1), KEY.toUpperCase()]) {
      await expectClosed(await send(presented, { method }));
    }
  }
  const response = await send(KEY);
  expect([response.status, await response.text()]).toEqual([200, "[]"]);
  expect(response.headers.get("Worker-Version")).toBe(env.VERSION.id);
  expect((await send(KEY, { method: "OPTIONS" })).status).toBe(204);
});

it("is closed without a key of its own", async () => {
  for (const API_KEY of ["", undefined]) {
    for (const presented of [undefined, "", "undefined"]) await expectClosed(await send(presented, {}, { API_KEY }));
  }
});
