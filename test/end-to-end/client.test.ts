// Clients that a caller generates from the description: with number for an int64, as the generator does by default, and
// with bigint, by the programs of the guide.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import createClient from "openapi-fetch";
import { expect, it, onTestFinished } from "vitest";
import type { components, paths } from "../../dist/openapi.d.ts";
import { run } from "../processes.ts";
import { API_KEY, KEY, ORIGIN } from "./service.ts";

// A deployed service has a rate limit.
const REPEATED = { retry: { count: 3, delay: 10_000, condition: /\b429\b/ } };

const client = createClient<paths>({ baseUrl: `${ORIGIN}/v1`, headers: KEY });

it("has types for an animal without a status, and for errors", REPEATED, async () => {
  const { data, response: created } = await client.POST("/pets", { body: { name: "Typed", categoryId: 3 } });
  expect(created.status).toBe(201);
  expect(data?.status).toBe("available");
  const { error, response: rejected } = await client.GET("/pets", { params: { query: { limit: 101 } } });
  expect(rejected.status).toBe(400);
  expect(error?.code satisfies components["schemas"]["Error"]["code"] | undefined).toBe("bad_request");
});

it("has bigint for an int64 if it is made by the programs of the guide", REPEATED, async () => {
  const [, section = ""] = readFileSync("src/site/guide.md", "utf8").split("\n## Generated clients\n");
  const [[, types = ""] = [], [, program = ""] = []] = section.matchAll(/^```[jt]s\n([\s\S]*?)^```$/gm);
  const folder = mkdtempSync(join(tmpdir(), "animal-store-client-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "client.mts"), program);
  const env = { ANIMAL_STORE: `${ORIGIN}/v1`, API_KEY };
  const node = (...args: string[]) => run(process.execPath, args, folder, env);
  await node("--input-type=module", "--eval", types);
  const strict = "--strict --noEmit --skipLibCheck --types node --module nodenext --target esnext";
  await node("node_modules/typescript/bin/tsc", ...strict.split(" "), "client.mts");
  // What the program calculates: it would throw if an id or a categoryId were a number.
  expect(await node("client.mts")).toMatch(/^\d+n 9007199254740994n$/m);
  await expect(run(process.execPath, ["client.mts"], folder, { ...env, API_KEY: "wrong" })).rejects.toThrow("401");
});
