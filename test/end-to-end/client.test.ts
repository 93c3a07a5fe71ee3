// A client that a caller generates from the description, by the programs of the guide.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { run } from "../processes.ts";
import { API_KEY, ORIGIN } from "./service.ts";

// A deployed service has a rate limit.
const REPEATED = { retry: { count: 3, delay: 10_000, condition: /\b429\b/ } };

it("a generated client has types that fit, and bigint for an int64", REPEATED, async () => {
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
