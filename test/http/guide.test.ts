// Every example of the guide, run as it stands: a reader's first calls work, in each language.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { REMOVAL } from "../../src/pets/deprecation.ts";
import { INT64 } from "../../src/values/int64.ts";
import { run } from "../command.ts";
import { KEY } from "./dev-server.ts";
import { send } from "./send.ts";

const guide = readFileSync("src/site/guide.md", "utf8");
const [setting = "", ...parts] = guide.split(/^## /m);
const sections = new Map(parts.map((part) => [part.slice(0, part.indexOf("\n")), part]));

/** What each section's examples print, in every language. */
const PRINTED: Record<string, RegExp> = {
  "First call": /id\W+\d+\W+name\W+Rex\W+categoryId\W+7\W+status\W+available/,
  Keys: /401[\s\S]+Bearer realm="animal-store", error="invalid_token"/,
  Paging: /On the first page[\s\S]+On a later page/,
  "Sending again safely (Idempotency-Key)": /first 201 (\S+)\s+second 201 \1\s|(\{"id":\d+,.*\})\2/,
  "Large integers": /Max\W+categoryId\W+9223372036854775807(?!\d)/,
  "Reading your own writes (x-d1-bookmark)": /status\W+pending/,
  Errors: /bad_request[\s\S]+name must be .*categoryId is required .*status must be one of available, pending, sold/,
  "The end of getPet": /Sunset: Thu, 05 Dec 2030 00:00:00 GMT[\s\S]+id\W+1\W/,
};

/** How a reader runs an example of each language, named as in its block; the text of the program is added. */
const LANGUAGES: Record<string, { needs: string[]; command: string[] }> = {
  sh: { needs: ["sh", "curl", "openssl"], command: ["sh", "-eu", "-c"] },
  js: { needs: [], command: [process.execPath, "--input-type=module", "--eval"] },
  python: { needs: ["python3"], command: ["python3", "-c"] },
};

const isInstalled = (program: string) => spawnSync(program, ["--help"], { stdio: "ignore" }).error === undefined;
const examplesIn = (text: string) => [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];

/** So many that a list of them has a second page. */
beforeAll(async () => {
  const headers = { ...KEY, "Content-Type": "application/json" };
  for (let animal = 0; animal <= 100; animal += 1) {
    const name = animal < 100 ? "On the first page" : "On a later page";
    await send(`${inject("origin")}/v1/pets`, {
      method: "POST",
      headers,
      body: JSON.stringify({ name, categoryId: 7 }),
    });
  }
});

const folder = mkdtempSync(join(tmpdir(), "animal-store-guide-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the guide", () => {
  it("names the address and the key, for the examples to use", () => {
    const [[, language, commands] = []] = examplesIn(setting);
    expect(language).toBe("sh");
    expect(commands).toBe("export ANIMAL_STORE=http://localhost:8787/v1\nexport API_KEY=local-key\n");
  });

  it("has the sections that are tested here, each with one example in every language", () => {
    expect([...sections.keys()]).toEqual(Object.keys(PRINTED));
    for (const section of sections.values()) {
      expect(examplesIn(section).map(([, language]) => language)).toEqual(Object.keys(LANGUAGES));
    }
  });

  it("says what the service says", () => {
    expect(guide).toContain(REMOVAL);
    expect(guide).toContain(`exact from ${INT64.minimum} to ${INT64.maximum}`);
  });
});

for (const [language, { needs, command }] of Object.entries(LANGUAGES)) {
  const missing = needs.filter((program) => !isInstalled(program));
  const skipped = missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "";

  describe.skipIf(skipped)(`the examples in ${language}${skipped}`, () => {
    it.each([...sections])("%s", async (title, section) => {
      const [, , text = ""] = examplesIn(section).find(([, name]) => name === language) ?? [];
      Object.assign(process.env, { ANIMAL_STORE: `${inject("origin")}/v1`, API_KEY: "local-key" });
      const [program = "", ...options] = command;
      expect(await run(program, [...options, text], folder)).toMatch(PRINTED[title] ?? /^$/);
    });
  });
}
