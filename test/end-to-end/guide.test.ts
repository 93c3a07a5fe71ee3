// Runs every example of the guide unchanged, so a reader's first calls work in each language and get what the guide shows. Only
// the list of all animals starts after those that earlier tests and runs have added.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { STATUS } from "../../src/http/errors.ts";
import { ALLOWED_HEADERS } from "../../src/http/responses.ts";
import { REMOVAL } from "../../src/openapi/pets.ts";
import { INT64 } from "../../src/values/int64.ts";
import { run } from "../processes.ts";
import { startServer } from "../server.ts";
import { send } from "./send.ts";
import { API_KEY, IS_REMOVED, KEY, ORIGIN } from "./service.ts";

const guide = readFileSync("src/site/guide.md", "utf8");
const examplesIn = (part: string) => [...part.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
const sections = guide.split(/^## /m).map((part): [title: string, part: string] => [part.split("\n")[0] ?? "", part]);
const [, ...withExamples] = sections.filter(([, part]) => examplesIn(part).length > 0);
const RETRYING = "Idempotency and retries";
const REMOVING = "Removal of getPet";
const WITH_RESPONSE = ["First call", "Errors", "Pagination", "Large integers (int64)"];
/** The responses that a section shows, without what differs in every store: the address and the ids. */
const responsesIn = (part: string) =>
  [...part.matchAll(/^```\n(HTTP[\s\S]*?)\n```$/gm)].map(([, text]) => anyStore(text));
const anyStore = (text = "") => text.replace(/<http.*?\/v1/, "</v1").replace(/("id":|\/pets\/|after=)\d+/g, "$1N");

/** What the examples of each section print, in every language. */
const PRINTED: Record<string, RegExp> = {
  "First call": /id\W+\d+\W+name\W+Rex\W+categoryId\W+7\W+status\W+available/,
  Errors: /bad_request[\s\S]+name must be .*categoryId is required .*status must be one of available, pending, sold/,
  Pagination: /On the first page[\s\S]+On a later page/,
  [RETRYING]: /id\W+(\d+)\W+name\W+Ada/,
  "Large integers (int64)": /Max\W+categoryId\W+9223372036854775807(?!\d)/,
  Bookmarks: /^\[\s*\{\W*id\W+\d+\W+name\W+Luna\W[^{]*$/,
  [REMOVING]: /Sunset: Thu, 05 Dec 2030 00:00:00 GMT[\s\S]+id\W+1\W/i,
};

/** How a reader runs an example of each language, named as in its code block. The program's text follows. */
const LANGUAGES: Record<string, { needs: string[]; command: string[] }> = {
  sh: { needs: ["sh", "curl", "openssl"], command: ["sh", "-eu", "-c"] },
  js: { needs: [], command: [process.execPath, "--input-type=module", "--eval"] },
  python: { needs: ["python3"], command: ["python3", "-c"] },
};

const isInstalled = (program: string) => spawnSync(program, ["--help"], { stdio: "ignore" }).error === undefined;

/** The ids in the responses of the service with each Idempotency-Key. */
const created = new Map<string, number[]>();
/** All responses of the service, as the guide would show them. */
const received: string[] = [];

/** Rejects Python's own User-Agent, as Cloudflare does. With each Idempotency-Key, cuts off or replaces three responses. */
const network = await startServer(async (request, response) => {
  const { "user-agent": agent = "", "idempotency-key": key = "" } = request.headers;
  if (agent.startsWith("Python-urllib/")) return response.writeHead(403).end("error code: 1010");
  const sent = ALLOWED_HEADERS.map((name) => [name, request.headers[name.toLowerCase()]]).filter(([, value]) => value);
  const headers = { ...Object.fromEntries(sent), "User-Agent": agent };
  const options = { method: String(request.method), headers, body: await text(request) };
  const { status, headers: others, text: body } = await send(ORIGIN + request.url, options);
  const shown = ["Location", "Link"].filter((name) => others.has(name)).map((name) => `${name}: ${others.get(name)}`);
  received.push(anyStore([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...shown, "", body].join("\n")));
  const ids = key ? [...(created.get(String(key)) ?? []), JSON.parse(body).id] : [];
  created.set(String(key), ids);
  if (ids.length === 1) {
    response.writeHead(status, { "Content-Length": body.length });
    return response.write(body.slice(0, 9), () => response.destroy());
  }
  if (ids.length === 2) return response.writeHead(503).end("<html>Try again</html>");
  if (ids.length === 3) return response.writeHead(429, { "Retry-After": "1" }).end("<html>Try again</html>");
  return response.writeHead(status, Object.fromEntries(others)).end(body);
}, "localhost");

const folder = mkdtempSync(join(tmpdir(), "animal-store-guide-"));
let newest = 0; // the greatest id before the list

beforeAll(async () => {
  // Enough animals for a second page. Only the last one is certain to have the greatest id.
  const add = async (name: string): Promise<number> => {
    const headers = { ...KEY, "Content-Type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify({ name, categoryId: 7 }) };
    return JSON.parse((await send(`${ORIGIN}/v1/pets`, request)).text).id;
  };
  newest = await add("Before the list");
  await Promise.all(Array.from({ length: 100 }, () => add("On the first page")));
  await add("On a later page");
});

afterAll(() => {
  network.close();
  rmSync(folder, { recursive: true, force: true });
});

it("lists every error code with its status", () => {
  const rows = [...guide.matchAll(/^\| (\d+) \| `(\w+)`: /gm)].map(([, status, code]) => [code, Number(status)]);
  expect(rows).toEqual(Object.entries(STATUS));
});

it("states the same limits as the service", () => {
  expect(guide).toContain(REMOVAL);
  expect(guide).toContain(`any value from ${INT64.minimum} to ${INT64.maximum} is exact`);
  expect(guide).toContain(`larger than ${BODY_LIMIT / 1024} KiB`);
});

for (const [language, { needs, command }] of Object.entries(LANGUAGES)) {
  const missing = needs.filter((program) => !isInstalled(program));
  const skipped = missing.length > 0 ? ` (SKIPPED: ${missing.join(", ")} is not installed)` : "";

  describe.skipIf(skipped)(`the examples in ${language}${skipped}`, { concurrent: true }, () => {
    it.for(withExamples)("%s", async ([title, section], { skip }) => {
      skip(title === REMOVING && IS_REMOVED, "SKIPPED: getPet is to be removed from the code");
      const [, , example = expect.fail()] = examplesIn(section).find(([, name]) => name === language) ?? [];
      const program = example.replace("limit=100", `limit=100&after=${newest}`);
      const [file = "", ...options] = command;
      const env = { ANIMAL_STORE: `${network.origin}/v1`, API_KEY };
      const printed = await run(file, [...options, program], folder, env);
      expect(printed).toMatch(PRINTED[title] ?? expect.fail());
      const isReceived = (parts: string[]) => received.some((answer) => parts.every((part) => answer.includes(part)));
      expect(responsesIn(section)).toHaveLength(WITH_RESPONSE.includes(title) ? 1 : 0);
      expect(responsesIn(section).filter((shown) => !isReceived(shown.split("…")))).toEqual([]);
      if (title !== RETRYING) return;
      const id = Number(PRINTED[RETRYING]?.exec(printed)?.[1]);
      expect([...created.values()]).toContainEqual([id, id, id, id]);
    });
  });
}
