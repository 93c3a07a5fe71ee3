// The smoke test: what every deployment must do, from outside. `npm run smoke -- <base URL>`, with a key in API_KEY, runs it
// against any running service. The deployment runs it against a version that does not serve callers yet. It stores only one
// animal, ever, because it always uses the same Idempotency-Key.

import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { printJson } from "../../src/values/json.ts";
import { printable, readArguments } from "../command-line.ts";
import { SMOKE_TEST } from "../environment.ts";
import { parseBase } from "./arguments.ts";
import { parseKeys } from "./keys.ts";
import { INTERVAL, type Limits, poll, type Reply, type Target } from "./poll.ts";

// The key belongs to this animal: with a different one, the service would reject the key.
const NEW_PET = printJson(SMOKE_TEST.pet);

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
  const create = (body: string, others: Record<string, string> = {}) =>
    call("/pets", { method: "POST", headers: { "Content-Type": "application/json", ...others }, body });

  await waitUntilReady(target, limits);
  const wrong = { headers: { Authorization: "Bearer wrong" } };
  expectError(await poll(target, "/pets", wrong, limits), 401, "unauthorized", INVALID_TOKEN);
  console.log("ok: rejects a request without a key, and a wrong key");

  const created = await create(NEW_PET, { [IDEMPOTENCY_HEADER]: SMOKE_TEST.key });
  if (created.status === 422) {
    // Plain HTTP is possible only on this machine.
    const isLocal = !environment && target.base.startsWith("http:");
    const flags = isLocal ? "--local" : `--env ${environment ?? "<environment>"} --remote`;
    throw new Error(`POST /pets: somebody with a key has used the smoke test's Idempotency-Key for a different animal (422).
The service is not broken. Delete that animal, and run the test again:
npx wrangler d1 execute DB ${flags} --command "DELETE FROM pets WHERE idempotency_key = '${SMOKE_TEST.key}'"`);
  }
  const [, id = ""] = /^\{"id":(\d{1,19}),/.exec(created.text) ?? [];
  const pet = NEW_PET.replace("{", `{"id":${id || "<id>"},`);
  expect(created, 201, pet, ["Location", `/v1/pets/${id}`]);
  console.log(`ok: createPet stores an animal: ${pet}`);

  expect(await create(NEW_PET, { [IDEMPOTENCY_HEADER]: SMOKE_TEST.key }), 201, pet);
  console.log("ok: createPet stores it once");

  expect(await call(`/pets?status=${SMOKE_TEST.pet.status}&limit=1&after=${BigInt(id) - 1n}`), 200, `[${pet}]`);
  const page = await call("/pets?limit=1");
  expect(page, 200, "[{");
  const [, next] = /^<(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "") ?? [];
  if (next) {
    const following = await call(`/pets${URL.parse(next)?.search ?? ""}`);
    expect(following, 200, "[{");
    if (following.text === page.text) throw new Error(`${following.request}: the same animals as on the page before.`);
  }
  console.log("ok: listPets finds it, and links to the next page");

  const got = await call(`/pets/${id}`);
  const isRemoved = got.status === 410; // from its removal date on
  expect(got, isRemoved ? 410 : 200, isRemoved ? '"code":"gone"' : pet, ["Sunset", DEPRECATION_HEADERS.Sunset]);
  console.log("ok: getPet finds it, or is removed");

  expectError(await call("/pets?limit=101"), 400, "bad_request");
  expectError(await create('{"name": " ", "categoryId": 1.5}'), 400, "bad_request");
  expectError(await create("Rex", { "Content-Type": "text/plain" }), 415, "unsupported_media_type");
  expectError(await call("/nothing"), 404, "not_found");
  console.log("ok: rejects requests that are not valid");
}

/** Waits until a request without a key is rejected as only this service does. Throws if it is not in time. */
export async function waitUntilReady(target: Target, limits: Limits): Promise<void> {
  // Each new connection may reach a different machine, with a different version.
  const request = { headers: { Connection: "close" } };
  expectError(await poll(target, "/pets", request, limits, target.version ? 5 : 1), 401, "unauthorized", CHALLENGE);
}

/** Throws unless the reply has the status, the text in its body, and the header. */
function expect(reply: Reply, status: number, text: string, [name, value]: [string?, string?] = []): void {
  if (reply.status === status && reply.text.includes(text) && (!name || reply.headers.get(name) === value)) return;
  const expected = `${status} ${text}${name ? ` with ${name}: ${value}` : ""}`;
  throw new Error(`${reply.request}: expected ${expected}, got ${reply.status}: ${reply.excerpt}`);
}

function expectError(reply: Reply, status: number, code: string, challenge?: string): void {
  expect(reply, status, `"code":"${code}"`, challenge ? ["WWW-Authenticate", challenge] : []);
}

if (import.meta.main) {
  const usage = "API_KEY=<key> npm run smoke -- <base URL that ends in /v1, such as http://localhost:8787/v1>";
  const { base, key } = readArguments(usage, ([base = ""], { API_KEY }) => ({
    base: parseBase("The base URL", base),
    key: parseKeys("API_KEY", API_KEY).newest,
  }));
  try {
    await smoke({ base }, key, { until: Date.now() + 30_000, interval: INTERVAL });
    console.log("The smoke test passed.");
  } catch (failure) {
    console.error(printable(`The smoke test failed: ${(failure as Error).message}`));
    process.exitCode = 1;
  }
}
