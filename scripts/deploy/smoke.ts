// The smoke test: what every deployment must do, from outside. `npm run smoke -- <base URL>`, with a key in API_KEY, runs it
// against any running service. The deployment runs it against a version that does not serve callers yet. It stores only one
// animal, ever, because it always uses the same Idempotency-Key.

import { isDeepStrictEqual } from "node:util";
import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { CHALLENGE, readKeys } from "../../src/http/authentication.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { parseJson, printJson } from "../../src/values/json.ts";
import { SMOKE_TEST } from "../environment.ts";
import { type Answer, type Limits, parseBase, poll, type Target } from "./poll.ts";

// The key belongs to this animal: with a different one, the service would reject the key.
const { key: IDEMPOTENCY_KEY, pet: NEW_PET } = SMOKE_TEST;

/** Throws NoAnswer, and an Error that names the request whose answer is wrong. */
export async function smoke(target: Target, key: string, limits: Limits): Promise<void> {
  const authorization = { Authorization: `Bearer ${key}` };
  let bookmark: Record<string, string> = {};

  /** Sends a request with the key and the newest bookmark, so that a replica has what was stored. */
  async function call(path: string, request: RequestInit = {}): Promise<Answer> {
    const headers = { ...authorization, ...bookmark, ...request.headers };
    const answer = await poll(target, path, { ...request, headers }, limits);
    if (answer.status === 401) throw new Error(`${answer.request}: the environment does not have this key (401).`);
    const newest = answer.headers.get(BOOKMARK_HEADER);
    if (newest) bookmark = { [BOOKMARK_HEADER]: newest };
    return answer;
  }
  const create = (body: string, headers: Record<string, string> = {}) =>
    call("/pets", { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body });

  const anonymous = await poll(target, "/pets", {}, limits);
  expectError(anonymous, 401, "unauthorized");
  expectHeader(anonymous, "WWW-Authenticate", CHALLENGE);
  pass("rejects a request without a key");

  const wrong = await poll(target, "/pets", { headers: { Authorization: "Bearer wrong" } }, limits);
  expectError(wrong, 401, "unauthorized");
  expectHeader(wrong, "WWW-Authenticate", `${CHALLENGE}, error="invalid_token"`);
  pass("rejects a wrong key");

  const created = await create(printJson(NEW_PET), { [IDEMPOTENCY_HEADER]: IDEMPOTENCY_KEY });
  const pet = expectBody(created, 201) as { id: bigint };
  expect(created, "the animal that was sent", isDeepStrictEqual(pet, { id: pet.id, ...NEW_PET }));
  expectHeader(created, "Location", `/v1/pets/${pet.id}`);
  pass(`createPet stores an animal: ${created.text}`);

  const repeated = await create(printJson(NEW_PET), { [IDEMPOTENCY_HEADER]: IDEMPOTENCY_KEY });
  expect(repeated, `the same animal, ${created.text}`, repeated.text === created.text);
  pass("createPet stores it once");

  const filtered = await call(`/pets?status=${NEW_PET.status}&limit=1&after=${pet.id - 1n}`);
  expect(filtered, `[${created.text}]`, filtered.text === `[${created.text}]`);
  const page = await call("/pets?limit=1");
  expectBody(page, 200);
  const [, next] = /^<(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "") ?? [];
  if (next) {
    const following = await call(`/pets${new URL(next).search}`);
    expectBody(following, 200);
    expect(following, "a different page", following.text !== page.text);
  }
  pass("listPets finds it, and links to the next page");

  // 410 from its removal date on.
  const got = await call(`/pets/${pet.id}`);
  if (got.status === 410) expectError(got, 410, "gone");
  else expect(got, created.text, got.text === created.text);
  expectHeader(got, "Sunset", DEPRECATION_HEADERS.Sunset);
  pass("getPet finds it, or is removed");

  expectError(await call("/pets?limit=101"), 400, "bad_request");
  expectError(await create('{"name": " ", "categoryId": 1.5}'), 400, "bad_request");
  expectError(await create("Rex", { "Content-Type": "text/plain" }), 415, "unsupported_media_type");
  expectError(await call("/nothing"), 404, "not_found");
  pass("rejects requests that are not valid");
}

function pass(what: string): void {
  console.log(`ok: ${what}`);
}

function expect({ request, status, excerpt }: Answer, expected: string, holds: boolean): void {
  if (!holds) throw new Error(`${request}: expected ${expected}, got ${status}: ${excerpt}`);
}

function expectHeader(answer: Answer, name: string, value: string): void {
  expect(answer, `${name}: ${value}`, answer.headers.get(name) === value);
}

function expectBody(answer: Answer, status: number): unknown {
  expect(answer, String(status), answer.status === status);
  let body: unknown;
  try {
    body = parseJson(answer.text, ["id", ...Object.keys(NEW_PET)]);
  } catch {
    // Not the parser's message, which quotes the text.
  }
  expect(answer, "a JSON object or array", typeof body === "object" && body !== null);
  return body;
}

function expectError(answer: Answer, status: number, code: string): void {
  expect(answer, code, (expectBody(answer, status) as { code?: string }).code === code);
}

if (import.meta.main) {
  const { API_KEY = "" } = process.env;
  const base = parseBase(process.argv[2] ?? "");
  const { keys, invalid } = readKeys(API_KEY);
  const key = keys.at(-1);
  if (!base || !key || invalid.length > 0) {
    if (API_KEY && invalid.length > 0) console.error(`API_KEY: entry ${invalid.join(", ")} is not a valid key.`);
    console.error("usage: API_KEY=<key> npm run smoke -- <base URL, such as http://localhost:8787/v1>");
    process.exit(2);
  }
  try {
    await smoke({ base }, key, { until: Date.now() + 30_000 });
  } catch (failure) {
    console.error(`The smoke test failed: ${(failure as Error).message}`);
    process.exitCode = 1;
  }
}
