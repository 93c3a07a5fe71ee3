// Runs every example of the page as a reader pastes it, so a reader's first calls work in each language and get what
// the page shows. Then something goes wrong, and a program must fail and say why. Some things are replaced: lists start
// after the animals that earlier tests and runs have added, a request that gets no response ends after 1 second instead
// of 30, and a program that retries waits less.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch, outcome } from "../processes.ts";
import { openProxy, RAY, received } from "./network.ts";
import { send } from "./send.ts";
import { API_KEY, addAnimal, IS_REMOVED, KEY, ORIGIN } from "./service.ts";

const guide = readFileSync("src/site/guide.md", "utf8");
/** Each with its heading. */
const sections = guide
  .split(/^## /m)
  .map((part): [title: string, part: string] => [/^[\w ,]+/.exec(part)?.[0].trim() ?? "", part])
  .filter(([title]) => !(IS_REMOVED && title === "Get an animal"));
/** The responses that a section shows, without what differs in every store: the address and the ids. */
const responsesIn = (part: string) =>
  [...part.matchAll(/^```\n(HTTP[\s\S]*?)\n```$/gm)].map(([, text]) => anyStore(text));
const anyStore = (text = "") => text.replace(/<http.*?\/v1/, "</v1").replace(/("id":|\/pets\/|after=)\d+/g, "$1N");

const shell = ["sh", "curl", "openssl"].filter((program) => spawnSync(program, ["--help"]).error);
const python = ["/usr/bin/python3", "python3"].find((path) => spawnSync(path, ["-c", "import requests"]).status === 0);
/** How a reader runs an example, which follows or is in the file `example`, and what is missing here. */
const LANGUAGES: Record<string, { command: string[]; missing: string[] }> = {
  sh: { command: ["sh", "example"], missing: shell },
  js: { command: [process.execPath, "example.mjs"], missing: [] },
  ts: { command: [process.execPath, "example.ts"], missing: [] },
  python: { command: [python ?? "", "example"], missing: python ? [] : ["requests for python3"] },
};

const CLIENT = "TypeScript client";
const RETRYING = "Idempotency and retries";
/** Those that fail if anything fails. */
const PROGRAMS = ["Pagination", RETRYING];

const animal = (name: string, status = "") =>
  RegExp(`${status}[^]*id\\W+\\d+\\W+name\\W+${name}\\W+categoryId\\W+7\\W+status\\W+available`);
const answer = (status: number, name: string) => animal(name, `^(HTTP/1.1 )?${status} `);
/** What the examples of each section print, in every language. */
const PRINTED: Record<string, RegExp> = {
  "Getting started": answer(200, "Rex"),
  "List animals": answer(200, "Rex"),
  "Add an animal": answer(201, "Max"),
  "Get an animal": answer(200, "Rex"),
  // curl downloads it, and prints nothing.
  [CLIENT]: /^$|Luna[\s\S]+Luna[\s\S]+On the first page[\s\S]+On a later page[\s\S]+Luna/,
  Pagination: /On the first page[\s\S]+On a later page/,
  [RETRYING]: animal("Ada"),
  "Reading your own writes": RegExp(`^\\w{8}-.*\n${answer(200, "Rex").source.slice(1)}`),
};

/** What a program shows of a request that fails. One that retries takes the last two for incomplete responses. */
const SHOWN: [failure: string, shown: RegExp][] = [
  ["wrong key", RegExp(`401[^]+${RAY}[^]+The API key is not valid`)],
  ["redirect", RegExp(`302[^]+${RAY}`)],
  ["html", RegExp(`20[01][^]+${RAY}[^]+<h1>Welcome`)],
  ["silent", /timed?[ -]?out/i],
];

const folder = mkdtempSync(join(tmpdir(), "animal-store-guide-"));
let rex = 0n; // the id of the animal of the first call, after which the list starts
let client = "";

process.setMaxListeners(100); // Each example that runs listens for the end of this process.

/** Runs an example in a new folder. `failures`: of its first requests, by name. */
async function runExample([program = "", file = ""]: string[], example: string, failures: string[] = []) {
  const here = mkdtempSync(join(folder, "run-"));
  const run = openProxy(...failures);
  const adapted = example
    .replace("https://<your address>/v1", run.baseUrl)
    .replace("https://<your address>", ORIGIN)
    .replace("<your API key>", API_KEY)
    .replaceAll("?limit=1", `?limit=1&after=${rex - 1n}`)
    .replace("limit=100", `limit=100&after=${rex}`)
    .replace('status: "available" }', `status: "available", after: ${rex}n }`)
    .replace("/pets/1795132800000", `/pets/${rex}`)
    .replace("time.sleep(wait)", "time.sleep(wait / 20)")
    .replaceAll("timeout=30", failures.includes("silent") ? "timeout=1" : "$&");
  writeFileSync(join(here, file), adapted);
  writeFileSync(join(here, "client.ts"), client);
  const ended = await outcome(launch(program, [file], here, { ANIMAL_STORE: run.baseUrl, API_KEY }));
  // What the example says, because how many requests arrive in time depends on how busy the machine is.
  const waits = Array.from(ended.errors.matchAll(/again in (\d+) s/g), ([, seconds]) => Number(seconds));
  return { ...ended, ids: run.ids, waits };
}

beforeAll(async () => {
  client = (await send(`${ORIGIN}/client.ts`)).text;
  // Enough animals for a second page. Only the last one is certain to have the greatest id.
  rex = await addAnimal("Rex");
  await Promise.all(Array.from({ length: 100 }, () => addAnimal("On the first page")));
  await addAnimal("On a later page");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("shows what the service responds to an animal that is not valid", async () => {
  const headers = { ...KEY, "Content-Type": "application/json" };
  const invalid = { method: "POST", headers, body: '{"name": "", "status": "lost"}' };
  const { status, text } = await send(`${ORIGIN}/v1/pets`, invalid);
  expect(responsesIn(guide)).toContain(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\n\n${text}`);
});

for (const [language, { command, missing }] of Object.entries(LANGUAGES)) {
  const skipped = missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "";
  describe.skipIf(skipped)(`the examples in ${language}${skipped}`, { concurrent: true }, () => {
    const code = RegExp(`^\`\`\`${language}\\n([^]*?\\n)\`\`\`$`, "gm");
    const examples = sections.flatMap(([title, section]) => {
      const example = Array.from(section.matchAll(code), ([, program]) => program).join("");
      return example ? [{ title, section, example }] : [];
    });
    const programs = examples.filter(({ title }) => PROGRAMS.includes(title));

    it.for(examples)("$title: gets and prints what the page shows", async ({ title, section, example }) => {
      const { status, output, errors } = await runExample(command, example);
      expect(output, errors).toMatch(PRINTED[title] ?? expect.fail(`What does ${title} print?`));
      expect(status).toBe(0);
      const isReceived = (parts: string[]) =>
        received.some((text) => parts.every((part) => anyStore(text).includes(part)));
      expect(responsesIn(section).filter((shown) => !isReceived(shown.split("…")))).toEqual([]);
    });

    it.for(programs)("$title: fails and says why, if a request fails", async ({ title, example }) => {
      const [before, cases] = title === RETRYING ? [[], SHOWN.slice(0, 2)] : [[""], SHOWN];
      for (const [failure, shown] of cases) {
        const { status, output, errors } = await runExample(command, example, [...before, failure]);
        expect(status, output).toBeGreaterThan(0);
        expect(output).not.toMatch(/On a later page/);
        expect(errors).toMatch(shown);
      }
    });

    // Older versions of urllib3 accept a response that is cut off, and then it is a 201 that is not complete.
    it.for(programs.slice(1))(
      "$title: adds one animal if responses are lost, and gives up in the end",
      async ({ example }) => {
        const lost = await runExample(command, example, ["cut off", "429", "503", "shortened error", "html"]);
        expect([lost.status, lost.waits], lost.errors).toEqual([0, [1, 2, 4, 8, 16]]);
        expect([lost.ids.length, new Set(lost.ids).size]).toEqual([6, 1]);
        const { status, output, errors, waits } = await runExample(command, example, Array(6).fill("shortened"));
        expect([status === 0, output, waits]).toEqual([false, "", [1, 2, 4, 8, 16]]);
        expect(errors).toMatch(RegExp(`^Idempotency-Key: [^]+201[^]+${RAY}`));
      },
    );
  });
}
