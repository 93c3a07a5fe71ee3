// The smoke test: what every deployment must do, from outside. `npm run smoke -- <base URL>`, with a key in API_KEY, runs it
// against any running service; the deployment runs it against a version that no caller has met. It stores one animal, ever:
// the Idempotency-Key is always the same.

import assert from "node:assert/strict";
import { CHALLENGE } from "../../src/http/authentication.ts";
import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { parseJson, printJson } from "../../src/values/json.ts";
import { SMOKE_TEST } from "../environment.ts";
import { type Answer, ask, type Limits, type Target, Unanswered } from "./poll.ts";

// The key and the animal belong together: with a different animal, the key would be rejected.
const { key: KEY, pet: NEW_PET } = SMOKE_TEST;

/** Throws with what went wrong, at which request. */
export async function smoke(target: Target, key: string, limits: Limits): Promise<void> {
  let last = "GET /pets";
  const onRequest = (request: string) => {
    last = request;
  };
  try {
    await performAll(target, key, limits, onRequest);
  } catch (failure) {
    if (failure instanceof Unanswered) throw failure;
    limits.signal?.throwIfAborted();
    throw new Error(`${last}: ${(failure as Error).message}`);
  }
}

async function performAll(
  target: Target,
  key: string,
  limits: Limits,
  onRequest: (request: string) => void,
): Promise<void> {
  let bookmark: Record<string, string> = {};
  const authorization = { Authorization: `Bearer ${key}` };

  /** Sends a request with the key and the newest bookmark, with which a replica has what was stored. */
  async function call(path: string, request: RequestInit = {}): Promise<Answer> {
    const headers = { ...authorization, ...bookmark, ...request.headers };
    onRequest(`${request.method ?? "GET"} ${path}`);
    const answer = await ask(target, path, { ...request, headers }, limits);
    if (answer.status === 401) throw new Error("the key is none of the environment's keys (401).");
    const newest = answer.headers.get(BOOKMARK_HEADER);
    if (newest) bookmark = { [BOOKMARK_HEADER]: newest };
    return answer;
  }
  const create = (body: string, headers: Record<string, string> = {}) =>
    call("/pets", { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body });

  const nobody = await ask(target, "/pets", {}, limits);
  refused(nobody, 401, "unauthorized");
  assert.equal(nobody.headers.get("WWW-Authenticate"), CHALLENGE);
  done("refuses a request without a key");

  const stranger = await ask(target, "/pets", { headers: { Authorization: "Bearer wrong" } }, limits);
  refused(stranger, 401, "unauthorized");
  assert.equal(stranger.headers.get("WWW-Authenticate"), `${CHALLENGE}, error="invalid_token"`);
  done("refuses a wrong key");

  const created = await create(printJson(NEW_PET), { [IDEMPOTENCY_HEADER]: KEY });
  const pet = bodyOf(created, 201) as { id: bigint };
  assert.deepEqual(pet, { id: pet.id, ...NEW_PET });
  assert.equal(created.headers.get("Location"), `/v1/pets/${pet.id}`);
  done(`createPet stores an animal: ${created.text}`);

  assert.equal((await create(printJson(NEW_PET), { [IDEMPOTENCY_HEADER]: KEY })).text, created.text);
  done("createPet stores it once");

  // Held against each other as texts, which are exact.
  const filtered = await call(`/pets?status=${NEW_PET.status}&limit=1&after=${pet.id - 1n}`);
  assert.equal(filtered.text, `[${created.text}]`);
  const page = await call("/pets?limit=1");
  bodyOf(page, 200);
  const [, next] = /^<(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "") ?? [];
  if (next) {
    const following = await call(`/pets${new URL(next).search}`);
    bodyOf(following, 200);
    assert.notEqual(following.text, page.text);
  }
  done("listPets finds it, and pages on");

  // 410 from the day of its removal on.
  const got = await call(`/pets/${pet.id}`);
  if (got.status === 410) refused(got, 410, "gone");
  else assert.equal(got.text, created.text);
  assert.equal(got.headers.get("Sunset"), DEPRECATION_HEADERS.Sunset);
  done("getPet finds it, or is removed");

  refused(await call("/pets?limit=101"), 400, "bad_request");
  refused(await create('{"name": " ", "categoryId": 1.5}'), 400, "bad_request");
  refused(await create("Rex", { "Content-Type": "text/plain" }), 415, "unsupported_media_type");
  refused(await call("/nothing"), 404, "not_found");
  done("refuses what is no request of its interface");
}

function done(what: string): void {
  console.log(`ok: ${what}`);
}

function bodyOf({ status, text }: Answer, expected: number): unknown {
  if (status !== expected) throw new Error(`${expected} was expected, and ${status} answered: ${text}`);
  return parseJson(text, ["id", ...Object.keys(NEW_PET)]);
}

function refused(answer: Answer, status: number, code: string): void {
  assert.equal((bodyOf(answer, status) as { code: string }).code, code);
}

if (import.meta.main) {
  const { API_KEY } = process.env;
  const [base = ""] = process.argv.slice(2);
  if (!API_KEY || !URL.canParse(base)) {
    console.error("usage: API_KEY=<key> npm run smoke -- <base URL, such as http://localhost:8787/v1>");
    process.exit(2);
  }
  try {
    const key = API_KEY.split(",").at(-1)?.trim() ?? "";
    await smoke({ base: base.replace(/\/+$/, "") }, key, { until: Date.now() + 30_000 });
  } catch (failure) {
    console.error(`The smoke test failed: ${(failure as Error).message}`);
    process.exitCode = 1;
  }
}
