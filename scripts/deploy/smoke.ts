// The smoke test: what every deployment must do, from outside. `npm run smoke -- <base URL>`, with a key in API_KEY, runs it against
// any service. It stores only one animal, ever, because it always uses the same Idempotency-Key.

import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { printJson } from "../../src/values/json.ts";
import { exit, readArguments } from "../command-line.ts";
import { SMOKE_TEST } from "../environment.ts";
import { parseBase, parseKeys } from "./arguments.ts";
import { INTERVAL, type Limits, poll, type Reply, type Target } from "./poll.ts";

/** `environment`: its name, for the remedy in a message. Throws an Error that names the request that failed. */
export async function smoke(target: Target, key: string, limits: Limits, environment?: string): Promise<void> {
  // The key and, later, the newest bookmark, so that a replica has what was stored.
  const headers: Record<string, string> = { Authorization: `Bearer ${key}` };
  async function call(path: string, request: RequestInit = {}): Promise<Reply> {
    const reply = await poll(target, path, { ...request, headers: { ...headers, ...request.headers } }, limits);
    if (reply.status === 401) throw new Error(`${reply.request}: the service does not have this key (401).`);
    const newest = reply.headers.get(BOOKMARK_HEADER);
    if (newest) headers[BOOKMARK_HEADER] = newest;
    return reply;
  }
  // The Idempotency-Key belongs to this animal: the service rejects it with a different one.
  const newPet = printJson(SMOKE_TEST.pet);
  const create = (body: string, others: Record<string, string> = {}) =>
    call("/pets", { method: "POST", headers: { "Content-Type": "application/json", ...others }, body });

  await waitUntilReady(target, limits);
  const wrong = await poll(target, "/pets", { headers: { Authorization: "Bearer wrong" } }, limits);
  expect(wrong, 401, '"code":"unauthorized"', { "WWW-Authenticate": INVALID_TOKEN });
  console.log("ok: rejects a request without a key, and a wrong key");

  const created = await create(newPet, { [IDEMPOTENCY_HEADER]: SMOKE_TEST.key });
  if (created.status === 422) {
    // Plain HTTP is possible only on this machine.
    const isLocal = !environment && target.base.startsWith("http:");
    const flags = isLocal ? "--local" : `--env ${environment ?? "<environment>"} --remote`;
    throw new Error(`POST /pets: somebody with a key has used the smoke test's Idempotency-Key for a different animal (422).
The service is not broken. Delete that animal, and run the test again:
npx wrangler d1 execute DB ${flags} --command "DELETE FROM pets WHERE idempotency_key = '${SMOKE_TEST.key}'"`);
  }
  const [, id = ""] = /^\{"id":(\d{1,19}),/.exec(created.text) ?? [];
  const pet = newPet.replace("{", `{"id":${id || "<id>"},`);
  expect(created, 201, pet, { Location: `/v1/pets/${id}` });
  console.log(`ok: createPet stores an animal: ${pet}`);

  expect(await create(newPet, { [IDEMPOTENCY_HEADER]: SMOKE_TEST.key }), 201, pet);
  console.log("ok: createPet stores it once");

  expect(await call(`/pets?status=${SMOKE_TEST.pet.status}&limit=1&after=${BigInt(id) - 1n}`), 200, `[${pet}]`);
  const page = await call("/pets?limit=1");
  expect(page, 200, "[{");
  const [, next] = /^<[^?]+(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "") ?? [];
  if (next) expect(await call(`/pets${next}`), 200, "[{");
  console.log("ok: listPets finds it, and links to the next page");

  const got = await call(`/pets/${id}`);
  const isRemoved = got.status === 410; // from its removal date on
  expect(got, isRemoved ? 410 : 200, isRemoved ? '"code":"gone"' : pet, { Sunset: DEPRECATION_HEADERS.Sunset });
  console.log("ok: getPet finds it, or is removed");

  expect(await call("/pets?limit=101"), 400, '"code":"bad_request"');
  expect(await create('{"name": " ", "categoryId": 1.5}'), 400, '"code":"bad_request"');
  expect(await create("Rex", { "Content-Type": "text/plain" }), 415, '"code":"unsupported_media_type"');
  expect(await call("/nothing"), 404, '"code":"not_found"');
  console.log("ok: rejects requests that are not valid");
}

/** Waits until a request without a key is rejected as only this service does. Throws if it is not in time. */
export async function waitUntilReady(target: Target, limits: Limits): Promise<void> {
  // Each new connection may reach a different machine, with a different version.
  const request = { headers: { Connection: "close" } };
  const reply = await poll(target, "/pets", request, limits, target.version ? 5 : 1);
  expect(reply, 401, '"code":"unauthorized"', { "WWW-Authenticate": CHALLENGE });
}

/** Those of the keys that a service accepts. Throws if it, or its `version`, does not answer in time. */
export async function acceptedKeys(target: Target, keys: string[], limits: Limits): Promise<string[]> {
  const accepted: string[] = [];
  for (const key of keys) {
    // The key is checked before the path, and this path needs no database.
    const { status } = await poll(target, "/nothing", { headers: { Authorization: `Bearer ${key}` } }, limits);
    if (status !== 401) accepted.push(key);
  }
  return accepted;
}

/** Throws unless the reply has the status, the text in its body, and the headers. */
function expect(reply: Reply, status: number, text: string, headers: Record<string, string> = {}): void {
  const fields = Object.entries(headers);
  const hasFields = fields.every(([name, value]) => reply.headers.get(name) === value);
  if (reply.status === status && reply.text.includes(text) && hasFields) return;
  const expected = [`${status} ${text}`, ...fields.map((field) => field.join(": "))].join(" with ");
  throw new Error(`${reply.request}: expected ${expected}, got ${reply.status}: ${reply.excerpt}`);
}

if (import.meta.main) {
  const usage = "API_KEY=<key> npm run smoke -- <base URL that ends in /v1, such as http://localhost:8787/v1>";
  const { base, key } = readArguments(usage, ([base = ""], { API_KEY }) => ({
    base: parseBase("The base URL", base),
    key: parseKeys(API_KEY).at(-1) ?? "",
  }));
  const limits = { until: Date.now() + 30_000, interval: INTERVAL };
  await smoke({ base }, key, limits).catch(({ message }: Error) => exit(`The smoke test failed: ${message}`, 1));
  console.log("The smoke test passed.");
}
