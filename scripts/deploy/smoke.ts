// The smoke test: what every deployment must do, from outside. `npm run smoke -- <base URL>`, with a key in API_KEY, runs it
// against any running service. The deployment runs it against a version that does not serve callers yet. It stores only one
// animal, ever, because it always uses the same Idempotency-Key.

import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { printJson } from "../../src/values/json.ts";
import { readArguments } from "../command.ts";
import { SMOKE_TEST } from "../environment.ts";
import { lastKey, parseBase } from "./arguments.ts";
import { type Answer, type Limits, poll, type Target, waitUntilReady } from "./poll.ts";

// The key belongs to this animal: with a different one, the service would reject the key.
const NEW_PET = printJson(SMOKE_TEST.pet);

/** Throws NoAnswer, and an Error that names the request whose answer is wrong. */
export async function smoke(target: Target, key: string, limits: Limits): Promise<void> {
  let bookmark: Record<string, string> = {};

  /** Sends a request with the key and the newest bookmark, so that a replica has what was stored. */
  async function call(path: string, request: RequestInit = {}): Promise<Answer> {
    const headers = { Authorization: `Bearer ${key}`, ...bookmark, ...request.headers };
    const answer = await poll(target, path, { ...request, headers }, limits);
    if (answer.status === 401) throw new Error(`${answer.request}: the environment does not have this key (401).`);
    const newest = answer.headers.get(BOOKMARK_HEADER);
    if (newest) bookmark = { [BOOKMARK_HEADER]: newest };
    return answer;
  }
  const create = (body: string, headers: Record<string, string> = {}) =>
    call("/pets", { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body });

  if (target.version) await waitUntilReady(target, limits);
  const anonymous = await poll(target, "/pets", {}, limits);
  expectError(anonymous, 401, "unauthorized");
  expectHeader(anonymous, "WWW-Authenticate", CHALLENGE);
  console.log("ok: rejects a request without a key");

  const wrong = await poll(target, "/pets", { headers: { Authorization: "Bearer wrong" } }, limits);
  expectError(wrong, 401, "unauthorized");
  expectHeader(wrong, "WWW-Authenticate", INVALID_TOKEN);
  console.log("ok: rejects a wrong key");

  const created = await create(NEW_PET, { [IDEMPOTENCY_HEADER]: SMOKE_TEST.key });
  const [, id = "<id>"] = /^\{"id":(\d+),/.exec(created.text) ?? [];
  const pet = NEW_PET.replace("{", `{"id":${id},`);
  expectBody(created, 201, pet);
  expectHeader(created, "Location", `/v1/pets/${id}`);
  console.log(`ok: createPet stores an animal: ${pet}`);

  expectBody(await create(NEW_PET, { [IDEMPOTENCY_HEADER]: SMOKE_TEST.key }), 201, pet);
  console.log("ok: createPet stores it once");

  const { status } = SMOKE_TEST.pet;
  expectBody(await call(`/pets?status=${status}&limit=1&after=${BigInt(id) - 1n}`), 200, `[${pet}]`);
  const page = await call("/pets?limit=1");
  expectBody(page, 200, "[{");
  const [, next] = /^<(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "") ?? [];
  if (next) {
    const following = await call(`/pets${new URL(next).search}`);
    expectBody(following, 200, "[{");
    expect(following, "a different page", following.text !== page.text);
  }
  console.log("ok: listPets finds it, and links to the next page");

  // 410 from its removal date on.
  const got = await call(`/pets/${id}`);
  if (got.status === 410) expectError(got, 410, "gone");
  else expectBody(got, 200, pet);
  expectHeader(got, "Sunset", DEPRECATION_HEADERS.Sunset);
  console.log("ok: getPet finds it, or is removed");

  expectError(await call("/pets?limit=101"), 400, "bad_request");
  expectError(await create('{"name": " ", "categoryId": 1.5}'), 400, "bad_request");
  expectError(await create("Rex", { "Content-Type": "text/plain" }), 415, "unsupported_media_type");
  expectError(await call("/nothing"), 404, "not_found");
  console.log("ok: rejects requests that are not valid");
}

function expect({ request, status, excerpt }: Answer, expected: string, holds: boolean): void {
  if (!holds) throw new Error(`${request}: expected ${expected}, got ${status}: ${excerpt}`);
}

function expectHeader(answer: Answer, name: string, value: string): void {
  expect(answer, `${name}: ${value}`, answer.headers.get(name) === value);
}

function expectBody(answer: Answer, status: number, text: string): void {
  expect(answer, `${status} ${text}`, answer.status === status && answer.text.includes(text));
}

const expectError = (answer: Answer, status: number, code: string) => expectBody(answer, status, `"code":"${code}"`);

if (import.meta.main) {
  const usage = "API_KEY=<key> npm run smoke -- <base URL that ends in /v1, such as http://localhost:8787/v1>";
  const { base, key } = readArguments(usage, ([base = ""], { API_KEY }) => ({
    base: parseBase("The base URL", base),
    key: lastKey("API_KEY", API_KEY),
  }));
  try {
    await smoke({ base }, key, { until: Date.now() + 30_000 });
    console.log("The smoke test passed.");
  } catch (failure) {
    console.error(`The smoke test failed: ${(failure as Error).message}`);
    process.exitCode = 1;
  }
}
