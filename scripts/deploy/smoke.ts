// The smoke test: what every deployment must do, from outside. It only reads, and sends requests that must be rejected,
// so it stores nothing. `npm run smoke -- <base URL>` runs it against any service.

import { CHALLENGE, INVALID_TOKEN } from "../../src/http/authentication.ts";
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

/** The smoke test failed. `section` of docs/OPERATIONS.md says what to do if a service that callers use fails it. */
export class SmokeFailed extends Error {
  readonly section: string;

  constructor(message: string, section: string) {
    super(message);
    this.section = section;
  }
}

/** Throws an Error that names the request that failed. */
export async function smoke(target: Target & { key: string }, limits: Limits): Promise<void> {
  const call = (path: string, request: RequestInit = {}, type = "application/json", key = target.key) =>
    poll(target, path, { ...request, headers: { Authorization: `Bearer ${key}`, "Content-Type": type } }, limits);
  const create = (body: string, type?: string) => call("/pets", { method: "POST", body }, type);

  await waitUntilReady(target, limits);
  if (target.isTrial) {
    expect(await poll({ ...target, version: "", isTrial: false }, "/pets", {}, limits), 404, "");
    console.log("ok: the trial Worker lets nobody else in");
  }
  const wrong = await call("/pets", {}, undefined, "wrong");
  expect(wrong, 401, '{"code":"unauthorized"', { "WWW-Authenticate": INVALID_TOKEN });
  console.log("ok: rejects a request without a key, and a wrong key");

  const page = await call("/pets?limit=1");
  expect(page, 200, "[");
  const [, next] = /^<[^?]+(.+)>; rel="next"$/.exec(page.response.headers.get("Link") ?? "") ?? [];
  if (next) expect(await call(`/pets${next}`), 200, '[{"id":');
  console.log("ok: listPets returns a page, and the next one if there is one");

  const [, id = "1"] = /^\[\{"id":(-?\d+),/.exec(page.text) ?? [];
  const got = await call(`/pets/${id}`);
  // Another replica may not have the animal yet, and from its removal date on getPet is gone.
  const body = { 404: '{"code":"not_found"', 410: '{"code":"gone"' }[got.status];
  expect(got, body ? got.status : 200, body ?? `{"id":${id},`, DEPRECATION_HEADERS);
  console.log("ok: getPet finds an animal or none, or is removed");

  // Even a service that accepts these cannot store them: the table rejects the name, and the other is not JSON.
  expect(await create('{"name":" ","categoryId":1.5}'), 400, '{"code":"bad_request"');
  expect(await create("Rex", "text/plain"), 415, '{"code":"unsupported_media_type"');
  expect(await call("/nothing"), 404, '{"code":"not_found"');
  console.log("ok: rejects requests that are not valid");
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
  if (reply.isClosed) throw new SmokeFailed("The service is closed for maintenance.", "All callers get errors");
  const fields = Object.entries(headers);
  const hasFields = fields.every(([name, value]) => reply.response.headers.get(name) === value);
  if (reply.status === status && reply.text.startsWith(text) && hasFields) return;
  const expected = [`${status} ${reply.excerpt(text, 100)}…`, ...fields.map((field) => field.join(": "))].join(
    " with ",
  );
  const message = `${reply.request}: expected ${expected}, got ${reply.status}: ${reply.body}`.trim();
  if (reply.status !== 401 || status === 401) throw new SmokeFailed(message, "All callers get errors");
  throw new SmokeFailed(`${message} The service does not have this key.`, "One caller gets 401");
}

/** The message, and the section that says what to do. */
export const withSection = (failure: Error): string => {
  const section = failure instanceof SmokeFailed ? failure.section : "All callers get errors";
  return `${failure.message}\nSee "${section}" in docs/OPERATIONS.md.`;
};

if (import.meta.main) {
  const { base, key } = await readArguments("npm run smoke -- <base URL that ends in /v1>", async ([base = ""]) => ({
    base: parseBase("The base URL", base),
    key: await readKey(),
  }));
  let secret = "";
  const onSecret = (name: string) => {
    if (!secret) console.log(`This key is the one in the secret ${name}.`);
    secret = name;
  };
  await smoke({ base, key, onSecret }, { interval: INTERVAL, patience: 30_000 }).catch((failure: Error) =>
    exit(`The smoke test of ${base} failed: ${withSection(failure)}`, 1),
  );
  console.log("The smoke test passed.");
}
