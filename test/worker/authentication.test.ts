import { expect, it, vi } from "vitest";
import { call, expectError, NO_KEYS, ORIGIN } from "./call.ts";

const SHORTEST = "x".repeat(16);
const LONGEST = "x".repeat(512);
// RFC 6750: if a token was sent, the challenge says that it is not valid.
const MISSING = ["api_key_missing", 'Bearer realm="animal-store"'] as const;
const INVALID = ["api_key_invalid", 'Bearer realm="animal-store", error="invalid_token"'] as const;
const SEVERAL = "Send one Authorization header, with one API key.";

it.each([undefined, "is not a valid API key", "x".repeat(15), 5 as never])(
  "every request is 500 while API_KEY is %j, and one line is logged until a secret is a valid key",
  async (API_KEY) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    for (let i = 0; i < 6; i++) {
      if (i % 3 === 0) expect((await call("/v1/pets")).status).toBe(200);
      const bindings = { ...NO_KEYS, API_KEY, MY_API_KEY: LONGEST };
      const { status, text, headers } = await call("/v1/pets", { bindings, authorization: `Bearer ${LONGEST}` });
      expect(status).toBe(500);
      expect(headers.has("API-Key-Name")).toBe(false);
      expect(text).not.toContain("API_KEY");
    }
    const logged = log.mock.calls.map(([line]) => JSON.parse(line).cause);
    const cause = "No secret is a valid key: set API_KEY.";
    expect(logged.filter((line) => line === cause)).toEqual([cause, cause]);
  },
);

it("a new isolate logs that no secret is a valid key, too", async () => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  vi.resetModules();
  const { default: service } = await import("../../src/index.ts");
  await service.fetch(new Request(`${ORIGIN}/v1/pets`), {} as Env);
  expect(JSON.parse(log.mock.lastCall?.[0])).toMatchObject({ cause: "No secret is a valid key: set API_KEY." });
});

it.each([
  [`bearer    ${SHORTEST}`, SHORTEST],
  ["Bearer AZaz09-._~+/xx==", "AZaz09-._~+/xx=="],
  [`Bearer ${LONGEST}`, LONGEST],
])("accepts %j if a secret is %j, whichever it is", async (authorization, key) => {
  const others = { API_KEY: "b".repeat(16), API_KEY_ALICE: "c".repeat(16), API_KEY_BOB__2: "d".repeat(16) };
  for (const name of Object.keys(others)) {
    const bindings = { ...NO_KEYS, ...others, [name]: key };
    expect((await call("/v1/pets", { authorization, bindings })).status).toBe(200);
  }
});

it("admits each key from the moment when its secret is there until it is gone or changed", async () => {
  const statusWith = async (API_KEY_ALICE: string | undefined) =>
    (await call("/v1/pets", { authorization: `Bearer ${alice}`, bindings: { API_KEY_ALICE } })).status;
  vi.spyOn(console, "error").mockReturnValue();
  const [alice, bob] = ["alice".repeat(4), "bob".repeat(6)];
  const values = [undefined, alice, bob, alice, undefined, alice, "not a valid API key"];
  expect(await Promise.all(values.map(statusWith))).toEqual([401, 200, 401, 200, 401, 200, 401]);
});

const NOT_A_KEY = "is ignored: a key has 16 to 512 letters, digits and -._~+/, and = only at its end.";
const NOT_A_NAME =
  "is ignored: the name of a key is API_KEY_, in capitals, and then up to 56 letters, digits and underscores.";
const IGNORED = "ignored-because-of-its-name";

it.each([
  ["API_KEY_ALICE", "", NOT_A_KEY],
  ["API_KEY_ALICE", SHORTEST.slice(1), NOT_A_KEY],
  ["API_KEY_ALICE", `${SHORTEST},${SHORTEST}`, NOT_A_KEY],
  ["API_KEY_ALICE", `${LONGEST}x`, NOT_A_KEY],
  ["API_KEY_", IGNORED, NOT_A_NAME],
  ["API_KEY___2", IGNORED, NOT_A_NAME],
  ["API_KEY_A-B", IGNORED, NOT_A_NAME],
  [`API_KEY_${"x".repeat(57)}`, IGNORED, NOT_A_NAME],
  ["api_key_low", IGNORED, NOT_A_NAME],
] as const)("ignores the secret %j with the value %j, and logs that once, by its name", async (name, value, why) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  const bindings = { [name]: value };
  for (let i = 0; i < 2; i++) expect((await call("/v1/pets", { bindings })).status).toBe(200);
  const logged = log.mock.calls.map(([line]) => JSON.parse(line));
  const cause = `Secret ${name} ${why}`;
  expect(logged).toEqual([expect.objectContaining({ failure: "configuration", cause, caller: "API_KEY" })]);
  const authorization = `Bearer ${value || IGNORED}`;
  expect((await call("/v1/pets", { bindings, authorization })).status).toBe(401);
});

it.each<[authorization: string, expected: typeof MISSING | typeof INVALID, message?: string]>([
  ["Bearer", MISSING],
  ["Basic Bearer first-key-for-tests", MISSING],
  ["Bearerfirst-key-for-tests", MISSING],
  ["Bearer\tfirst-key-for-tests", MISSING],
  ["Bearer first", INVALID],
  ["Bearer first-key-for-tests1", INVALID],
  ["Bearer First-key-for-tests", INVALID],
  ["Bearer first-key-for-tests first-key-for-tests", INVALID],
  [`Bearer ${LONGEST}x`, INVALID],
  ['Bearer "first-key-for-tests"', INVALID],
  ["Bearer first-key-for-tests\u2028", INVALID], // the runtime warns about this one
  // Two headers arrive joined by a comma.
  ["Bearer first-key-for-tests,second-key-for-tests", INVALID, SEVERAL],
  ["Bearer first-key-for-tests, Bearer second-key-for-tests", INVALID, SEVERAL],
])("rejects %j", async (authorization, [code, challenge], message) => {
  const answer = await call("/v1/pets", { authorization, bindings: { API_KEY_LONGEST: LONGEST } });
  expectError(answer, code, message);
  expect(answer.headers.get("WWW-Authenticate")).toBe(challenge);
});

it("ignores a key in the query and in the body", async () => {
  const body = "access_token=first-key-for-tests";
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const path = "/v1/pets?access_token=first-key-for-tests&api_key=first-key-for-tests";
  expectError(await call(path, { method: "POST", body, headers, authorization: null }), "api_key_missing");
});

it.each(["first-key-for-tests", "second-key-for-tests", "x".repeat(10_000)])(
  "compares %s with every key, in constant time and in buffers of the same length",
  async (key) => {
    const compare = vi.spyOn(crypto.subtle, "timingSafeEqual");
    await call("/v1/pets", { authorization: `Bearer ${key}` });
    const lengths = compare.mock.calls.map((buffers) => buffers.map(({ byteLength }) => byteLength));
    expect(lengths).toEqual(Array(2).fill([512, 512]));
  },
);
