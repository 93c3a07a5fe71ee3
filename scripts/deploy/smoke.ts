// The smoke test: what every deployment must do, from outside. `npm run smoke -- <base URL>` runs it against a service
// that callers use: there, it only reads, and sends requests that must be rejected, so it stores nothing.

import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
import { BOOKMARK_HEADER } from "../../src/d1/database.ts";
import { IDEMPOTENCY_HEADER } from "../../src/http/idempotency.ts";
import { DEPRECATION_HEADERS } from "../../src/pets/deprecation.ts";
import { exit, readArguments } from "../command-line.ts";
import { readKey } from "./key.ts";
import { INTERVAL, type Limits, poll, type Reply, type Target } from "./poll.ts";

/** The host names of this machine. */
export const THIS_MACHINE = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * A base URL, without a slash at its end. A key sent over plain HTTP can be read on the way, so that is possible only
 * on this machine. Throws with a message for the operator, which does not quote a password in it.
 */
export function parseBase(source: string, text: string): string {
  const url = URL.parse(text);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && THIS_MACHINE.test(url.hostname));
  const path = url?.pathname.replace(/\/+$/, "") ?? "";
  if (url && isSafe && path.endsWith("/v1")) return url.origin + path;
  throw new Error(`${source} must be an https URL, or an http URL of localhost, that ends in /v1.`);
}

/** A service answered what it must not. */
export class SmokeFailed extends Error {}

/** The service is closed or does not have the key, so it was not tested. Some procedures wait for this. */
class NotTested extends SmokeFailed {}

type Call = (path: string, request?: RequestInit, headers?: Record<string, string>) => Promise<Reply>;

/**
 * Throws an Error that names the request that failed; a SmokeFailed if it is not temporary. On a trial Worker, whose
 * store must be empty, it also adds animals.
 */
export async function smoke(target: Target & { key: string; isTrial?: boolean }, limits: Limits): Promise<void> {
  const call: Call = (path, request = {}, headers = {}) => {
    const common = { Authorization: `Bearer ${target.key}`, "Content-Type": "application/json" };
    return poll(target, path, { ...request, headers: { ...common, ...headers } }, limits);
  };

  await waitUntilReady(target, limits);
  const wrong = await call("/pets", {}, { Authorization: "Bearer wrong" });
  expect(wrong, 401, '{"code":"unauthorized"', { "WWW-Authenticate": INVALID_TOKEN });
  console.log("ok: rejects a request without a key, and a wrong key");

  if (target.isTrial) await addAnimals(call);

  const page = await call("/pets?limit=1");
  expect(page, 200, "[");
  const next = nextOf(page);
  if (next) expect(await call(next), 200, '[{"id":');
  console.log("ok: listPets returns a page, and the next one if there is one");

  const [, id = "1"] = /^\[\{"id":(-?\d+),/.exec(page.text) ?? [];
  const got = await call(`/pets/${id}`);
  // Another replica may not have the animal yet, and from its removal date on getPet is gone.
  const body = { 404: '{"code":"not_found"', 410: '{"code":"gone"' }[got.status];
  expect(got, body ? got.status : 200, body ?? `{"id":${id},`, DEPRECATION_HEADERS);
  console.log("ok: getPet finds an animal or none, or is removed");

  // Even a service that accepts these cannot store them: the table rejects the name, and the other is not JSON.
  const create = { method: "POST", body: '{"name":" ","categoryId":1.5}' };
  expect(await call("/pets", create), 400, '{"code":"bad_request"');
  const plain = await call("/pets", create, { "Content-Type": "text/plain" });
  expect(plain, 415, '{"code":"unsupported_media_type"');
  expect(await call("/nothing"), 404, '{"code":"not_found"');
  console.log("ok: rejects requests that are not valid");
}

const NEW_REX = '{"name":"Rex \u{1f415}","categoryId":9223372036854775807}';
export const REX = `{"id":1,${NEW_REX.slice(1, -1)},"status":"available"}`;
const NEW_ADA = '{"name":"Ada \\"","categoryId":-9223372036854775808,"status":"sold"}';
export const ADA = `{"id":2,${NEW_ADA.slice(1)}`;

/** Adds two animals to an empty store, and reads them in every way. */
async function addAnimals(call: Call): Promise<void> {
  const create = (body: string, key: string) => call("/pets", { method: "POST", body }, { [IDEMPOTENCY_HEADER]: key });
  expect(await create(NEW_REX, "rex"), 201, REX, { Location: "/v1/pets/1" });
  expect(await create(NEW_REX, "rex"), 201, REX);
  expect(await create(NEW_ADA, "rex"), 422, '{"code":"unprocessable_content"');
  const last = await create(NEW_ADA, "ada");
  expect(last, 201, ADA, { Location: "/v1/pets/2" });
  console.log("ok: createPet adds each animal once");

  const bookmark = { [BOOKMARK_HEADER]: last.response.headers.get(BOOKMARK_HEADER) ?? "" };
  const read = (path: string) => call(path, {}, bookmark);
  const page = await read("/pets?limit=1");
  expect(page, 200, `[${REX}]`);
  const next = nextOf(page);
  if (!next) throw new SmokeFailed("GET /pets?limit=1: there is no Link to the next page.");
  expect(await read(next), 200, `[${ADA}]`);
  expect(await read("/pets?status=sold"), 200, `[${ADA}]`);
  expect(await read("/pets?status=pending"), 200, "[]");
  const got = await read("/pets/1");
  const isRemoved = got.status === 410;
  expect(got, isRemoved ? 410 : 200, isRemoved ? '{"code":"gone"' : REX, DEPRECATION_HEADERS);
  console.log("ok: what was added is read back exactly, page by page, by status, and by id");
}

/** The path and query of the next page, without /v1. Empty on the last page. */
function nextOf({ response }: Reply): string {
  const [, query] = /^<[^?]+(.+)>; rel="next"$/.exec(response.headers.get("Link") ?? "") ?? [];
  return query ? `/pets${query}` : "";
}

/** Waits until a request without a key is rejected as only this service does. Throws if it is not in time. */
export async function waitUntilReady(target: Target, limits: Limits): Promise<void> {
  // Each new connection may reach a different machine, with a different version.
  const request = { headers: { Connection: "close" } };
  const reply = await poll(target, "/pets", request, limits, target.version ? 5 : 1);
  expect(reply, 401, '{"code":"unauthorized"', { "WWW-Authenticate": CHALLENGE });
}

/** Throws unless the reply has the status, a body that starts with the text, and the headers. */
function expect(reply: Reply, status: number, text: string, headers: Record<string, string> = {}): void {
  if (reply.isClosed) throw new NotTested("The service is closed for maintenance.");
  const fields = Object.entries(headers);
  const hasFields = fields.every(([name, value]) => reply.response.headers.get(name) === value);
  if (reply.status === status && reply.text.startsWith(text) && hasFields) return;
  if (reply.status === 401 && status !== 401) throw new NotTested("The service does not have this key.");
  const expected = [`${status} ${reply.excerpt(text, 100)}…`, ...fields.map((field) => field.join(": "))];
  throw new SmokeFailed(
    `${reply.request}: expected ${expected.join(" with ")}, got ${reply.status}: ${reply.body}`.trim(),
  );
}

/** What to print of a failure of the test of a service that callers use. */
export const toMessage = (failure: Error): string =>
  failure instanceof NotTested
    ? failure.message
    : `The smoke test failed. ${failure.message}\nSee "All callers get errors" in docs/OPERATIONS.md.`;

if (import.meta.main) {
  const usage = "npm run smoke -- <base URL that ends in /v1>";
  const { base, key } = await readArguments(usage, async ([base = "", ...others]) => {
    if (others.length > 0) throw new Error("The smoke test takes one base URL.");
    return { base: parseBase("The base URL", base), key: await readKey() };
  });
  let secret = "";
  const onSecret = (name: string) => {
    if (!secret) console.log(`This key is the one in the secret ${name}.`);
    secret = name;
  };
  await smoke({ base, key, onSecret }, { interval: INTERVAL, patience: 30_000 }).catch((failure: Error) =>
    exit(toMessage(failure), 1),
  );
  console.log("The smoke test passed.");
}
