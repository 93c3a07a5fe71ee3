// Runs every example of the page as a reader pastes it, so a reader's first calls work in each language and get what
// the page shows. Then something goes wrong, and a program must fail and say why. Some things are replaced: lists start
// after the animals that earlier tests and runs have added, a request that gets no response ends after 1 second instead
// of 30, and a program that retries waits less, or retries less often.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ServerResponse, STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { description } from "../../src/description.ts";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";
import { ALLOWED_HEADERS } from "../../src/http/responses.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { REMOVAL } from "../../src/pets/pet-description.ts";
import { INT64 } from "../../src/values/int64.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { send } from "./send.ts";
import { API_KEY, addAnimal, IS_REMOVED, KEY, ORIGIN } from "./service.ts";

const guide = readFileSync("src/site/guide.md", "utf8");
/** Each with its heading: those that run, apart from client.test.ts, which runs the programs of "Generated clients". */
const sections = guide
  .split(/^## /m)
  .map((part): [title: string, part: string] => [/^[\w ,]+/.exec(part)?.[0].trim() ?? "", part])
  .filter(([title]) => !["Generated clients", IS_REMOVED && "Get an animal"].includes(title));
/** The responses that a section shows, without what differs in every store: the address and the ids. */
const responsesIn = (part: string) =>
  [...part.matchAll(/^```\n(HTTP[\s\S]*?)\n```$/gm)].map(([, text]) => anyStore(text));
const anyStore = (text = "") => text.replace(/<http.*?\/v1/, "</v1").replace(/("id":|\/pets\/|after=)\d+/g, "$1N");

const shell = ["sh", "curl", "openssl"].filter((program) => spawnSync(program, ["--help"]).error);
const python = ["/usr/bin/python3", "python3"].find((path) => spawnSync(path, ["-c", "import requests"]).status === 0);
/** How a reader runs an example, and what is missing here. */
const LANGUAGES: Record<string, { command: string[]; missing: string[] }> = {
  sh: { command: ["sh", "-c"], missing: shell },
  js: { command: [process.execPath, "--input-type=module", "--eval"], missing: [] },
  python: { command: [python ?? "", "-c"], missing: python ? [] : ["requests for python3"] },
};

/** The header cf-ray of every response to an example, which reports of problems need. */
const RAY = "9e7ef1dc58252cea-AMS";
const RETRYING = "Idempotency and retries";
const OWN_WRITES = "Reading your own writes";
/** The 30 of the seconds that an example waits for a response. */
const TIMEOUT = /(?<=--max-time |timeout=|timeout\()30(?=\D)/g;

const animal = (name: string, status = "") =>
  RegExp(`${status}[^]*id\\W+\\d+\\W+name\\W+${name}\\W+categoryId\\W+7\\W+status\\W+available`);
const answer = (status: number, name: string) => animal(name, `^(HTTP/1.1 )?${status} `);
/** What the examples of each section print, in every language. */
const PRINTED: Record<string, RegExp> = {
  "Getting started": answer(200, "Rex"),
  "List animals": answer(200, "Rex"),
  "Add an animal": answer(201, "Max"),
  "Get an animal": answer(200, "Rex"),
  Pagination: /On the first page[\s\S]+On a later page/,
  [RETRYING]: animal("Ada"),
  "Large integers": RegExp(`${INT64.maximum}n .+${INT64.maximum}}`),
  [OWN_WRITES]: animal("Luna"),
};

/** What can be sent instead of the service's response, whose status and body it gets. */
const FAILURES: Record<string, (response: ServerResponse, status: number, body: string) => void> = {
  // Whoever follows it gets what looks like a success.
  redirect: (response) => response.writeHead(302, { Location: response.req.url }).end(),
  html: (response, status) => response.writeHead(status).end("<h1>Welcome</h1>"),
  shortened: (response, status, body) => response.writeHead(status).end(body.slice(0, -1)),
  "cut off": (response, status, body) =>
    response.writeHead(status, { "Content-Length": body.length }).write(body.slice(0, 9), () => response.destroy()),
  silent: () => {},
  429: (response) => response.writeHead(429, { "Retry-After": "1" }).end("error code: 1015"),
  503: (response) => response.writeHead(503, { "Retry-After": "2" }).end("unavailable"),
};
/** What a program shows of a request that fails. One that retries takes the last two for incomplete responses. */
const SHOWN: [failure: string, shown: RegExp][] = [
  ["wrong key", RegExp(`401[^]+${RAY}[^]+The API key is not valid`)],
  ["redirect", RegExp(`302[^]+${RAY}`)],
  ["html", RegExp(`20[01][^]+${RAY}[^]+<h1>Welcome`)],
  ["silent", /timed?[ -]?out/i],
];
/** In the file that the examples of curl write. */
const OF_EARLIER_RUN = '[{"name":"Of an earlier run"}]\n{"id":1,"name":"Of an earlier run"}\n';

/** Each run of an example: how its requests fail, if they do, and the ids in the responses of the service. */
const runs: { failures: string[]; requests: number; ids: number[] }[] = [];
/** All responses of the service, as the guide would show them. */
const received: string[] = [];

/** Each run has a base URL with its number. */
const network = await startServer(async (request, response) => {
  const [, number, path] = /^\/(\d+)(.*)/.exec(String(request.url)) ?? [];
  const run = runs[Number(number)] ?? expect.fail();
  const failure = run.failures[run.requests++] ?? "";
  response.setHeader("cf-ray", RAY);
  const sent = ALLOWED_HEADERS.map((name) => [name, request.headers[name.toLowerCase()]]).filter(([, value]) => value);
  const headers = { ...Object.fromEntries(sent), ...(failure === "wrong key" && { Authorization: "Bearer wrong" }) };
  const options = { method: String(request.method), headers, body: await text(request) };
  const { status, headers: others, text: body } = await send(ORIGIN + path, options);
  const shown = ["Location", "Link"].filter((name) => others.has(name)).map((name) => `${name}: ${others.get(name)}`);
  received.push(anyStore([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...shown, "", body].join("\n")));
  if (body) run.ids.push(JSON.parse(body).id);
  others.delete("Content-Length");
  const respond = FAILURES[failure];
  if (respond) return respond(response, status, body);
  const link = others.get("Link")?.replace(ORIGIN, `${network.origin}/${number}`);
  return response.writeHead(status, { ...Object.fromEntries(others), ...(link && { link }) }).end(body);
}, "localhost");

const folder = mkdtempSync(join(tmpdir(), "animal-store-guide-"));
let rex = 0; // the id of the animal of the first call, after which the list starts

process.setMaxListeners(100); // Each example that runs listens for the end of this process.

/** Runs an example in a new folder. `failures`: of its first requests, by name. */
async function runExample([file = "", ...options]: string[], example: string, failures: string[] = []) {
  const here = mkdtempSync(join(folder, "run-"));
  writeFileSync(join(here, "response.txt"), OF_EARLIER_RUN);
  const run = { failures, requests: 0, ids: [] as number[] };
  const ANIMAL_STORE = `${network.origin}/${runs.push(run) - 1}/v1`;
  const program = example
    .replace("https://<your address>/v1", ANIMAL_STORE)
    .replace("<your API key>", API_KEY)
    .replace("?limit=1", `?limit=1&after=${rex - 1}`)
    .replace("limit=100", `limit=100&after=${rex}`)
    .replace("/pets/1795132800000", `/pets/${rex}`)
    .replace("--retry 5", "--retry 3")
    .replace("wait * 1000", "wait * 50")
    .replace("time.sleep(wait)", "time.sleep(wait / 20)")
    .replaceAll(TIMEOUT, failures.includes("silent") ? "1" : "$&");
  const ended = await outcome(launch(file, [...options, program], here, { ANIMAL_STORE, API_KEY }));
  // What the example says, because how many requests arrive in time depends on how busy the machine is.
  const waits = Array.from(ended.errors.matchAll(/(?:again|retry) in (\d+) s/g), ([, seconds]) => Number(seconds));
  return { ...ended, ...run, waits };
}

beforeAll(async () => {
  // Enough animals for a second page. Only the last one is certain to have the greatest id.
  rex = await addAnimal("Rex");
  await Promise.all(Array.from({ length: 100 }, () => addAnimal("On the first page")));
  await addAnimal("On a later page");
});

afterAll(() => {
  network.close();
  rmSync(folder, { recursive: true, force: true });
});

it("shows what the service responds to an animal that is not valid", async () => {
  const headers = { ...KEY, "Content-Type": "application/json" };
  const invalid = { method: "POST", headers, body: '{"name": "", "status": "lost"}' };
  const { status, text } = await send(`${ORIGIN}/v1/pets`, invalid);
  expect(responsesIn(guide)).toContain(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\n\n${text}`);
});

it("states the same limits, dates and headers as the service", () => {
  const deprecated = new Date(Number(DEPRECATION_HEADERS.Deprecation.slice(1)) * 1000);
  const day = deprecated.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  const facts = [
    `has been deprecated since ${day}, and will be removed on ${REMOVAL}`,
    `published, as version ${description.info.version}.`,
    `any value from ${INT64.minimum} to ${INT64.maximum} is exact`,
    `\`Retry-After: ${RETRY_AFTER}\``,
  ];
  expect(facts.filter((fact) => !guide.includes(fact))).toEqual([]);
});

for (const [language, { command, missing }] of Object.entries(LANGUAGES)) {
  const skipped = missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "";
  describe.skipIf(skipped)(`the examples in ${language}${skipped}`, { concurrent: true }, () => {
    const code = RegExp(`^\`\`\`${language}\\n([^]*?\\n)\`\`\`$`, "gm");
    const examples = sections.flatMap(([title, section]) => {
      const example = Array.from(section.matchAll(code), ([, program]) => program).join("");
      return example ? [{ title, section, example }] : [];
    });
    const programs = examples.filter(({ title }) => ["Pagination", RETRYING, OWN_WRITES].includes(title));
    const calls = examples.filter((each) => !programs.includes(each) && each.example.includes("API_KEY"));
    const creates = examples.filter(({ title }) => ["Add an animal", RETRYING, OWN_WRITES].includes(title));
    const retrying = examples.find(({ title }) => title === RETRYING)?.example ?? expect.fail();

    it.for(examples)("$title: gets and prints what the page shows", async ({ title, section, example }) => {
      const { status, output, errors } = await runExample(command, example);
      expect(output, errors).toMatch(PRINTED[title] ?? expect.fail(`What does ${title} print?`));
      expect(status).toBe(0);
      const isReceived = (parts: string[]) => received.some((answer) => parts.every((part) => answer.includes(part)));
      expect(responsesIn(section).filter((shown) => !isReceived(shown.split("…")))).toEqual([]);
    });

    it.for(calls)("$title: prints the status and the message if the key is wrong", async ({ example }) => {
      const { status, output } = await runExample(command, example, ["wrong key"]);
      expect(output).toMatch(/401[\s\S]+The API key is not valid/);
      expect(status).toBe(0);
    });

    it.for(creates)("$title: adds nothing when it runs again with the same key", async (create) => {
      const key = crypto.randomUUID();
      const example = create.example.replace(/\$\(openssl.+\)|crypto.+\(\)|str\(uuid.+\)/, `"${key}"`);
      const [first, again] = [await runExample(command, example), await runExample(command, example)];
      expect(again.ids[0], again.errors).toBe(first.ids[0]);
      if (!programs.includes(create)) return;
      expect(first.errors).toContain(`Idempotency-Key: ${key}`);
      if (language !== "sh") return;
      // Without its first line, in a new terminal.
      const withoutKey = await runExample(command, example.replace(/^key=.+\n/, ""));
      expect([withoutKey.status === 0, withoutKey.requests]).toEqual([false, 0]);
    });

    it.for(programs)("$title: fails and says why, if a request fails", async ({ title, example }) => {
      const [before, cases] = title === RETRYING ? [[], SHOWN.slice(0, 2)] : [[""], SHOWN];
      for (const [failure, shown] of cases) {
        const { status, output, errors } = await runExample(command, example, [...before, failure]);
        expect(status, output).toBeGreaterThan(0);
        expect(output).not.toMatch(/On a later page|Of an earlier run/);
        expect(output + errors).toMatch(shown);
      }
    });

    it(`${RETRYING}: adds one animal if responses are lost, and waits as long as they say`, async () => {
      const { status, output, errors, ids, waits } = await runExample(command, retrying, ["cut off", "429", "503"]);
      expect(output, errors).toMatch(animal("Ada"));
      expect(status).toBe(0);
      expect([ids.length, new Set(ids).size]).toEqual([4, 1]);
      expect(waits).toEqual([1, 1, 2]);
    });

    // Older versions of urllib3 accept a response that is cut off, and then it is a 201 that is not complete.
    it.for([
      ["cut off", /bytes remaining|terminated|IncompleteRead|201 /],
      ["silent", /timed?[ -]?out/i],
      ["shortened", RegExp(`201[^]+${RAY}`)],
    ] as const)(`${RETRYING}: gives up in the end if every response is %s`, async ([failure, shown]) => {
      const { status, output, errors, waits } = await runExample(command, retrying, Array(6).fill(failure));
      expect(status).toBeGreaterThan(0);
      expect(output).toBe("");
      expect(errors).toMatch(shown);
      expect(errors).not.toContain("Of an earlier run");
      // curl does not look at the body, and really waits, so it has fewer tries here.
      const curlWaits = failure === "shortened" ? [] : [1, 2, 4];
      expect(waits).toEqual(language === "sh" ? curlWaits : [1, 2, 4, 8, 16]);
    });
  });
}
