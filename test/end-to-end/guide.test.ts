// Runs every example of the guide as a reader pastes it, so a reader's first calls work in each language and get what
// the guide shows, and behind a network that fails, where an example must fail and say why. Two things are replaced:
// lists start after the animals that earlier tests and runs have added, and where nothing answers, 30 seconds are 2.

import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type ServerResponse, STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { STATUS } from "../../src/http/errors.ts";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";
import { ALLOWED_HEADERS, EXPOSED_HEADERS } from "../../src/http/responses.ts";
import { description } from "../../src/openapi/document.ts";
import { REMOVAL } from "../../src/openapi/pets.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { INT64 } from "../../src/values/int64.ts";
import { componentOf } from "../conformance.ts";
import { launch, outcome } from "../processes.ts";
import { startServer } from "../server.ts";
import { LANGUAGES, RAY } from "./languages.ts";
import { send } from "./send.ts";
import { API_KEY, addAnimal, ORIGIN } from "./service.ts";

const guide = readFileSync("src/site/guide.md", "utf8");
const examplesIn = (part: string) => [...part.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
const sections = guide.split(/^## /m).map((part): [title: string, part: string] => [part.split("\n")[0] ?? "", part]);
const withExamples = sections.filter(([, part]) => examplesIn(part).some(([, name]) => name === "python"));
const RETRYING = "Idempotency and retries";
/** The responses that a section shows, without what differs in every store: the address and the ids. */
const responsesIn = (part: string) =>
  [...part.matchAll(/^```\n(HTTP[\s\S]*?)\n```$/gm)].map(([, text]) => anyStore(text));
const anyStore = (text = "") => text.replace(/<http.*?\/v1/, "</v1").replace(/("id":|\/pets\/|after=)\d+/g, "$1N");

type Respond = (response: ServerResponse, status: number, body: string) => void;
const WAIT = { "Retry-After": "1" };
const shows = (status: string, body = "") => RegExp(`(${status})[\\s\\S]+${RAY}[\\s\\S]+${body}`);
/**
 * Ways in which the network can fail: what every example shows, how many requests those that retry send if each fails,
 * and what is sent instead of the service's response, whose status and body it gets.
 */
const FAILURES: Record<string, [shown: RegExp, requests: number, respond?: Respond]> = {
  wrongKey: [shows("401", "The API key is not valid"), 1],
  html: [shows("503", "Try again"), 4, (response) => response.writeHead(503, WAIT).end("<html>Try again</html>")],
  json: [shows("400", "Bad request"), 1, (response) => response.writeHead(400).end('{"title":"Bad request"}')],
  limited: [shows("429", "1015"), 4, (response) => response.writeHead(429, WAIT).end("error code: 1015")],
  redirect: [shows("302"), 1, (response) => response.writeHead(302, { Location: "/sign-in" }).end("Elsewhere")],
  otherHtml: [shows("200", "Sign in"), 1, (response) => response.writeHead(200).end("<html>Sign in</html>")],
  otherJson: [/200[\s\S]+ok|Not found: .*ok/, 1, (response) => response.writeHead(200).end('{"ok":true}')],
  empty: [shows("20[01]|400"), 1, (response, status) => response.writeHead(status).end()],
  shortened: [
    /HTTP\/1.1 (20[01]|400)|Expect(ed|ing) ','/,
    1,
    (response, status, body) => response.writeHead(status).end(body.slice(0, -1)),
  ],
  cutOff: [
    /bytes remaining|terminated|IncompleteRead/,
    4,
    (response, status, body) =>
      response.writeHead(status, { "Content-Length": body.length }).write(body.slice(0, 9), () => response.destroy()),
  ],
  silent: [/timed? ?out/i, 2, () => {}], // A retry then gets the JSON, because giving up takes long.
};

/** What the examples of each section print, in every language. */
const EXAMPLES: Record<string, RegExp> = {
  "First call": /id\W+\d+\W+name\W+Rex\W+categoryId\W+7\W+status\W+available/,
  Errors: /bad_request[\s\S]+name must be .*categoryId is .*status must be one of/,
  Pagination: /On the first page[\s\S]+On a later page/,
  [RETRYING]: /^\W*id\W+(\d+)\W+name\W+Ada\W+categoryId\W+7\W+status\W+available\W*$/,
  "Large integers (int64)": /( id: \d+n|["']id["']: ?\d+),\W+name\W+Max\W+categoryId\W+9223372036854775807(?!\d)/,
  Bookmarks: /^\W*id\W+\d+\W+name\W+Luna\W[^{]*$/,
};

/** An example of curl alone shows the status and the headers. It does not fail because of these. */
const PLAIN_CURL = /^curl -i [^|]+$/;
const SHOWN_BY_CURL = ["redirect", "otherHtml", "otherJson", "empty", "shortened"];

/** The 30 of the seconds that an example waits for a response. */
const TIMEOUT = /(?<=--max-time |timeout=|timeout\()30(?=\D)/g;

/** Each run of an example: how its requests fail, if they do, and the ids in the responses of the service. */
const runs: { failures: string[]; requests: number; ids: number[] }[] = [];
/** All responses of the service, as the guide would show them. */
const received: string[] = [];

/** Each run has a base URL with its number. Rejects Python's own User-Agent, as Cloudflare does. */
const network = await startServer(async (request, response) => {
  const { "user-agent": agent = "" } = request.headers;
  if (agent.startsWith("Python-urllib/")) return response.writeHead(403).end("error code: 1010");
  const [, number, path] = /^\/(\d+)(.*)/.exec(String(request.url)) ?? [];
  const run = runs[Number(number)] ?? expect.fail();
  const failure = run.failures[run.requests++] ?? "";
  response.setHeader("cf-ray", RAY);
  const sent = ALLOWED_HEADERS.map((name) => [name, request.headers[name.toLowerCase()]]).filter(([, value]) => value);
  const headers = { ...Object.fromEntries(sent), "User-Agent": agent };
  if (failure === "wrongKey") headers.Authorization = "Bearer wrong";
  const options = { method: String(request.method), headers, body: await text(request) };
  const { status, headers: others, text: body } = await send(ORIGIN + path, options);
  const shown = ["Location", "Link"].filter((name) => others.has(name)).map((name) => `${name}: ${others.get(name)}`);
  received.push(anyStore([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...shown, "", body].join("\n")));
  run.ids.push(JSON.parse(body).id);
  const respond = FAILURES[failure]?.[2];
  if (respond) return respond(response, status, body);
  const link = others.get("Link")?.replace(ORIGIN, `${network.origin}/${number}`);
  return response.writeHead(status, { ...Object.fromEntries(others), "cf-ray": RAY, ...(link && { link }) }).end(body);
}, "localhost");

const folder = mkdtempSync(join(tmpdir(), "animal-store-guide-"));
let rex = 0; // the id of the animal of the first call, after which the list starts

process.setMaxListeners(100); // Each example that runs listens for the end of this process.

/** Runs an example in a new folder, with the files of an earlier run. `failures`: of its first requests. */
async function runExample([file = "", ...options]: string[], example: string, failures: string[] = [], files?: string) {
  const here = mkdtempSync(join(folder, "run-"));
  if (files) cpSync(files, here, { recursive: true });
  const run = { failures, requests: 0, ids: [] };
  const env = { ANIMAL_STORE: `${network.origin}/${runs.push(run) - 1}/v1`, API_KEY };
  let program = example.replace("?limit=1", `?limit=1&after=${rex - 1}`).replace("limit=100", `limit=100&after=${rex}`);
  if (failures.includes("silent")) program = program.replaceAll(TIMEOUT, "2");
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

it("lists every error code with its status", () => {
  const rows = guide.matchAll(/^\| \[(\d+)\]\(#[\w-]+-\1\) \| `(\w+)`: /gm);
  expect(Array.from(rows, ([, status, code]) => [code, Number(status)])).toEqual(Object.entries(STATUS));
});

it("states the same limits, dates and headers as the service", () => {
  const deprecated = new Date(Number(DEPRECATION_HEADERS.Deprecation.slice(1)) * 1000);
  const day = deprecated.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" });
  const { maxLength } = Object(componentOf({ $ref: "#/components/schemas/NewPet" }).properties?.["name"]);
  const code = (names: string[]) => names.map((name) => `\`${name}\``).join(", ");
  const facts = [
    `has been deprecated since ${day}, and will be removed on ${REMOVAL}`,
    `**${description.info.version}**`,
    `any value from ${INT64.minimum} to ${INT64.maximum} is exact`,
    `at most ${maxLength?.toLocaleString("en")} characters`,
    `a request has at most ${BODY_LIMIT / 1024} KiB`,
    `larger than ${BODY_LIMIT / 1024} KiB`,
    `\`Retry-After: ${RETRY_AFTER}\``,
    `requests in ${RETRY_AFTER} seconds`,
    `send the headers ${code(ALLOWED_HEADERS)},`,
    `read the response headers ${code(EXPOSED_HEADERS)}.`,
  ];
  expect(facts.filter((fact) => !guide.includes(fact))).toEqual([]);
});

for (const [language, { command, skipped }] of Object.entries(LANGUAGES)) {
  describe.skipIf(skipped)(`the examples in ${language}${skipped}`, { concurrent: true }, () => {
    it.for(withExamples)("%s", async ([title, section]) => {
      const [, , example = expect.fail()] = examplesIn(section).find(([, name]) => name === language) ?? [];
      const printed = EXAMPLES[title] ?? expect.fail();
      const isRetrying = title === RETRYING;
      const passing = await runExample(command, example, isRetrying ? ["cutOff", "limited"] : []);
      expect(passing.output, passing.errors).toMatch(printed);
      expect(passing.status).toBe(0);
      expect(responsesIn(guide)).toHaveLength(4);
      const isReceived = (parts: string[]) => received.some((answer) => parts.every((part) => answer.includes(part)));
      expect(responsesIn(section).filter((shown) => !isReceived(shown.split("…")))).toEqual([]);
      if (isRetrying) expect(passing.run.ids).toEqual(Array(3).fill(Number(printed.exec(passing.output)?.[1])));

      expect(example.match(TIMEOUT)).toBeTruthy();
      const fail = async (name: string, answered: number) => {
        const failures = [...Array(answered).fill(""), ...(name === "silent" ? [name, "json"] : Array(4).fill(name))];
        const { status, output, errors, run } = await runExample(command, example, failures, passing.here);
        const [shown, requests] = FAILURES[name] ?? expect.fail();
        const isShown = PLAIN_CURL.test(example) && SHOWN_BY_CURL.includes(name);
        if (!isShown) expect(status, `${name}: ${output}`).toBeGreaterThan(0);
        expect(output + errors, name).toMatch(isShown ? /^HTTP\/1.1 [23]0/ : shown);
        expect(output, name).not.toContain("On a later page");
        if (isRetrying) expect([output, run.requests], name).toEqual(["", requests]);
        if (isRetrying && requests > 1) expect(errors, name).toMatch(/again in 1 s|retry in 1 sec/);
      };
      // How many requests are answered before one fails.
      const counts = { Pagination: [1], Bookmarks: [0, 1] }[title] ?? [0];
      await Promise.all(counts.flatMap((answered) => Object.keys(FAILURES).map((name) => fail(name, answered))));
    });
  });
}
