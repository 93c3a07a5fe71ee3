// Runs every example of the page as a reader pastes it, so a reader's first calls work in each language and get what
// the page shows, and behind a network that fails, where an example must fail and say why. Some things are replaced:
// lists start after the animals that earlier tests and runs have added, each category is one that a JavaScript number
// would round, where nothing answers, 30 seconds are 1, and an example that retries waits less, or retries less often.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type ServerResponse, STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";
import { ALLOWED_HEADERS } from "../../src/http/responses.ts";
import { description } from "../../src/openapi/document.ts";
import { REMOVAL } from "../../src/openapi/pets.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
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
  .filter(([title]) => !["Getting started", "Generated clients", IS_REMOVED && "Get an animal"].includes(title));
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
const BIG = String(INT64.maximum);

const animal = (name: string) =>
  RegExp(`id\\W+(\\d+)n?\\W+name\\W+${name}\\W+categoryId\\W+${BIG}n?\\W+status\\W+available`);
/** What the examples of each section print, in every language. */
const PRINTED: Record<string, RegExp> = {
  "List animals": animal("Rex"),
  "Add an animal": animal("Max"),
  "Get an animal": animal("Rex"),
  Pagination: /On the first page[\s\S]+On a later page/,
  [RETRYING]: animal("Ada"),
  [OWN_WRITES]: animal("Luna"),
};

type Respond = (response: ServerResponse, status: number, body: string) => void;
/**
 * Ways in which the network can fail: what every example shows, and what is sent instead of the service's response,
 * whose status and body it gets.
 */
const FAILURES: Record<string, [shown: RegExp, respond?: Respond]> = {
  wrongKey: [RegExp(`401[\\s\\S]+${RAY}[\\s\\S]+The API key is not valid`)],
  // Once: whoever follows it gets what looks like a success.
  redirect: [RegExp(`302[\\s\\S]+${RAY}`), (response) => response.writeHead(302, { Location: response.req.url }).end()],
  shortened: [
    RegExp(`20[01][\\s\\S]+${RAY}`),
    (response, status, body) => response.writeHead(status).end(body.slice(0, -1)),
  ],
  cutOff: [
    // Older versions of urllib3 accept it, and then it is a 201 that is not complete.
    /bytes remaining|terminated|IncompleteRead|201 /,
    (response, status, body) =>
      response.writeHead(status, { "Content-Length": body.length }).write(body.slice(0, 9), () => response.destroy()),
  ],
  silent: [/timed?[ -]?out/i, () => {}],
};
/** Those after which a request is sent again, after so many seconds. curl really waits, so its run ends after three. */
const RETRIED = ["cutOff", "silent"];
const WAITS = [1, 2, 4, 8, 16];
/** An example of curl alone, which shows whatever it gets, and fails only because of a status. */
const PLAIN_CURL = /^(key=.+\necho .+\n)?curl -i [^|]+$/;

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
  const headers = { ...Object.fromEntries(sent), ...(failure === "wrongKey" && { Authorization: "Bearer wrong" }) };
  const options = { method: String(request.method), headers, body: await text(request) };
  const { status, headers: others, text: answer } = await send(ORIGIN + path, options);
  const shown = ["Location", "Link"].filter((name) => others.has(name)).map((name) => `${name}: ${others.get(name)}`);
  received.push(anyStore([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...shown, "", answer].join("\n")));
  if (answer) run.ids.push(JSON.parse(answer).id);
  others.delete("Content-Length");
  const body = answer.replaceAll('"categoryId":7,', `"categoryId":${BIG},`);
  if (/^\d/.test(failure)) return response.writeHead(Number(failure), { "Retry-After": "1" }).end("error code: 1015");
  const respond = FAILURES[failure]?.[1];
  if (respond) return respond(response, status, body);
  const link = others.get("Link")?.replace(ORIGIN, `${network.origin}/${number}`);
  return response.writeHead(status, { ...Object.fromEntries(others), "cf-ray": RAY, ...(link && { link }) }).end(body);
}, "localhost");

const folder = mkdtempSync(join(tmpdir(), "animal-store-guide-"));
let rex = 0; // the id of the animal of the first call, after which the list starts

process.setMaxListeners(100); // Each example that runs listens for the end of this process.

/** Runs an example, with the files of an earlier run. `failures`: of its first requests, by name or status. */
async function runExample([file = "", ...options]: string[], example: string, failures: string[] = [], files?: string) {
  const here = mkdtempSync(join(folder, "run-"));
  if (files) cpSync(files, here, { recursive: true });
  const run = { failures, requests: 0, ids: [] };
  const env = { ANIMAL_STORE: `${network.origin}/${runs.push(run) - 1}/v1`, API_KEY };
  const program = example
    .replace("?limit=1", `?limit=1&after=${rex - 1}`)
    .replace("limit=100", `limit=100&after=${rex}`)
    .replace("/pets/1", `/pets/${rex}`)
    .replace("--retry 5", "--retry 3")
    .replace("wait * 1000", "wait * 50")
    .replace("time.sleep(wait)", "time.sleep(wait / 20)")
    .replaceAll(TIMEOUT, failures.includes("silent") ? "1" : "$&");
  return { ...(await outcome(launch(file, [...options, program], here, env))), run, here };
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
    `**${description.info.version}**`,
    `any value from ${INT64.minimum} to ${INT64.maximum} is exact`,
    `\`Retry-After: ${RETRY_AFTER}\``,
  ];
  expect(facts.filter((fact) => !guide.includes(fact))).toEqual([]);
});

for (const [language, { command, missing }] of Object.entries(LANGUAGES)) {
  const skipped = missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "";
  describe.skipIf(skipped)(`the examples in ${language}${skipped}`, { concurrent: true }, () => {
    const examples = sections.flatMap(([title, section]) => {
      const [, example] = RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, "m").exec(section) ?? [];
      return example ? [{ title, section, example }] : [];
    });
    it.for(examples)("$title", async ({ title, section, example }) => {
      const printed = PRINTED[title] ?? expect.fail(`What does ${title} print?`);
      const isRetrying = title === RETRYING;
      const passing = await runExample(command, example, isRetrying ? ["cutOff", "429", "503"] : []);
      expect(passing.output, passing.errors).toMatch(printed);
      expect(passing.status).toBe(0);
      const isReceived = (parts: string[]) => received.some((answer) => parts.every((part) => answer.includes(part)));
      expect(responsesIn(section).filter((shown) => !isReceived(shown.split("…")))).toEqual([]);
      // What the example says, because how many requests arrive in time depends on how busy the machine is.
      const waits = ({ errors }: typeof passing) =>
        Array.from(errors.matchAll(/(?:again|retry) in (\d+) s/g), ([, seconds]) => Number(seconds));
      if (isRetrying) {
        expect(passing.run.ids).toEqual(Array(4).fill(Number(printed.exec(passing.output)?.[1])));
        expect(waits(passing)).toEqual([1, 1, 1]); // what Retry-After says
      }

      // Started again with the key that it has printed, it adds nothing. Without its first line, curl sends nothing.
      const [, key] = /^Idempotency-Key: (\S+)$/m.exec(passing.errors) ?? [];
      expect(Boolean(key)).toBe(example.includes("Idempotency-Key"));
      if (key) {
        const withKey = example.replace(/\$\(openssl.+\)|crypto.+\(\)|str\(uuid.+\)/, `"${key}"`);
        const again = await runExample(command, withKey);
        expect(again.run.ids[0], again.errors).toBe(passing.run.ids[0]);
        const without = language === "sh" ? await runExample(command, example.replace(/^key=.+\n/, "")) : undefined;
        if (without) expect([without.status === 0, without.run.requests]).toEqual([false, 0]);
      }

      expect(example.match(TIMEOUT)).not.toBeNull();
      const usual = ["wrongKey", "redirect", "shortened", ...(isRetrying ? RETRIED : [])];
      const fail = async (name: string) => {
        // If an example sends several requests, a later one fails.
        const answered = ["Pagination", OWN_WRITES].includes(title) ? [""] : [];
        const failures = [...answered, ...Array(name === "redirect" ? 1 : 6).fill(name)];
        const failing = await runExample(command, example, failures, passing.here);
        const { status, output, errors } = failing;
        expect(status, `${name}: ${output}`).toBeGreaterThan(0);
        expect(output + errors, name).toMatch(FAILURES[name]?.[0] ?? expect.fail());
        expect(output, name).not.toContain("On a later page");
        if (!isRetrying) return;
        expect(output, name).toBe("");
        // curl does not look at the body.
        const isRetried = RETRIED.includes(name) || (name === "shortened" && language !== "sh");
        expect(waits(failing), name).toEqual(isRetried ? WAITS.slice(0, language === "sh" ? 3 : 5) : []);
      };
      await Promise.all((PLAIN_CURL.test(example) ? ["wrongKey"] : usual).map(fail));
    });
  });
}
