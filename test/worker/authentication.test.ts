import { expect, it, vi } from "vitest";
import { type Answer, call, expectError, INVALID, MISSING, NO_KEYS, unauthorized } from "./call.ts";

const SEVERAL = unauthorized("Send one Authorization header, with one API key.");

/** Asserts a whole 401. If a token was sent, the challenge says that it is not valid. */
function expectUnauthorized(answer: Answer, expected: typeof MISSING): void {
  expectError(answer, expected);
  const error = expected === MISSING ? "" : ', error="invalid_token"';
  expect(answer.headers.get("WWW-Authenticate")).toBe(`Bearer realm="animal-store"${error}`);
}

it.each([undefined, "no token", 5 as never])(
  "every request is 500 while API_KEY is %j, and one line is logged until a secret is a valid key",
  async (API_KEY) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    for (let i = 0; i < 6; i++) {
      if (i % 3 === 0) expect((await call("/v1/pets")).status).toBe(200);
      const bindings = { ...NO_KEYS, API_KEY, MY_API_KEY: "x" };
      const { status, text, headers } = await call("/v1/pets", { bindings, authorization: "Bearer x" });
      expect(status).toBe(500);
      expect(headers.has("API-Key-Name")).toBe(false);
      expect(text).not.toContain("API_KEY");
    }
    const logged = log.mock.calls.map(([line]) => JSON.parse(line).cause);
    const cause = "No secret is a valid key: set API_KEY.";
    expect(logged.filter((line) => line === cause)).toEqual([cause, cause]);
  },
);

const LONGEST = "x".repeat(512);

it.each([
  ["bearer    a", "a"],
  ["Bearer AZaz09-._~+/==", "AZaz09-._~+/=="],
  [`Bearer ${LONGEST}`, LONGEST],
])("accepts %j if a secret is %j, whichever it is", async (authorization, key) => {
  const others = { API_KEY: "b", API_KEY_ALICE: "c", API_KEY_BOB_2: "d" };
  for (const name of Object.keys(others)) {
    const bindings = { ...NO_KEYS, ...others, [name]: key };
    expect((await call("/v1/pets", { authorization, bindings })).status).toBe(200);
  }
});

it("admits each key from the moment when its secret is there until it is gone or changed", async () => {
  const statusWith = async (API_KEY_ALICE: string | undefined) =>
    (await call("/v1/pets", { authorization: "Bearer alice", bindings: { API_KEY_ALICE } })).status;
  vi.spyOn(console, "error").mockReturnValue();
  const values = [undefined, "alice", "bob", "alice", undefined, "alice", "not valid"];
  expect(await Promise.all(values.map(statusWith))).toEqual([401, 200, 401, 200, 401, 200, 401]);
});

const NOT_A_KEY = "is not a valid key and is ignored.";
const NOT_A_NAME = "is ignored: the name of a key is API_KEY_, in capitals, and then letters, digits and underscores.";

it.each([
  ["API_KEY_ALICE", "", NOT_A_KEY],
  ["API_KEY_ALICE", "a,b", NOT_A_KEY],
  ["API_KEY_ALICE", `${LONGEST}x`, NOT_A_KEY],
  ["API_KEY_", "ignored", NOT_A_NAME],
  ["API_KEY_A-B", "ignored", NOT_A_NAME],
  ["api_key_low", "ignored", NOT_A_NAME],
] as const)("ignores the secret %j with the value %j, and logs that once, by its name", async (name, value, why) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  const bindings = { [name]: value };
  for (let i = 0; i < 2; i++) expect((await call("/v1/pets", { bindings })).status).toBe(200);
  const logged = log.mock.calls.map(([line]) => JSON.parse(line));
  const cause = `Secret ${name} ${why}`;
  expect(logged).toEqual([expect.objectContaining({ failure: "configuration", cause, caller: "API_KEY" })]);
  expect((await call("/v1/pets", { bindings, authorization: "Bearer ignored" })).status).toBe(401);
});

it.each([
  ["Bearer", MISSING],
  ["Basic Bearer first-key", MISSING],
  ["Bearerfirst-key", MISSING],
  ["Bearer\tfirst-key", MISSING],
  ["Bearer first", INVALID],
  ["Bearer first-key1", INVALID],
  ["Bearer First-key", INVALID],
  ["Bearer first-key first-key", INVALID],
  [`Bearer ${LONGEST}x`, INVALID],
  ['Bearer "first-key"', INVALID],
  ["Bearer first-key\u2028", INVALID], // the runtime warns about this one
  // Two headers arrive joined by a comma.
  ["Bearer first-key,second-key", SEVERAL],
  ["Bearer first-key, Bearer second-key", SEVERAL],
])("rejects %j", async (authorization, expected) => {
  expectUnauthorized(await call("/v1/pets", { authorization, bindings: { API_KEY_LONGEST: LONGEST } }), expected);
});

it("ignores a key in the query and in the body", async () => {
  const body = "access_token=first-key";
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const path = "/v1/pets?access_token=first-key&api_key=first-key";
  expectUnauthorized(await call(path, { method: "POST", body, headers, authorization: null }), MISSING);
});

it.each(["first-key", "second-key", "x".repeat(10_000)])(
  "compares %s with every key, in constant time and in buffers of the same length",
  async (key) => {
    const compare = vi.spyOn(crypto.subtle, "timingSafeEqual");
    await call("/v1/pets", { authorization: `Bearer ${key}` });
    expect(compare.mock.calls.map((buffers) => buffers.map(({ byteLength }) => byteLength))).toEqual([
      [512, 512],
      [512, 512],
    ]);
  },
);
