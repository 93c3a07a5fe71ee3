// What all operations do: each error exactly as in its example, and sessions that start at the caller's bookmark.

import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import type { ErrorCode } from "../../src/http/errors.ts";
import { described } from "../conformance.ts";
import { failing } from "./binding.ts";
import { type Answer, EXAMPLE_CALLS, expectError, insertRows, PLAIN_HTTP } from "./call.ts";

const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;
const GIVEN = "00000001-00000002-00000003-0123456789abcdef0123456789abcdef";
/** How a session starts, by the bookmark of its request. Those that are not bookmarks read from the primary. */
const STARTS: [bookmark: string | undefined, start: string][] = [
  [undefined, "first-unconstrained"],
  [GIVEN, GIVEN],
  ["", "first-primary"],
  ["first-unconstrained", "first-primary"],
  [GIVEN.toUpperCase(), "first-primary"],
  [GIVEN.slice(1), "first-primary"],
  [`${GIVEN}, ${GIVEN}`, "first-primary"],
];

type Requests = { [Code in ErrorCode]?: () => Promise<Answer> };

/** Tests one operation, with its example and the id 1. `ownErrors`: a request for each error that not all have. */
export function testOperation(operationId: string, ownErrors: Requests): void {
  const operation = described(operationId);
  const perform = EXAMPLE_CALLS[operationId] ?? expect.fail();
  // What D1 refuses is a failure whose message does not depend on the operation.
  const failWith = (message: string) => perform({ bindings: { DB: failing(new Error(message)) } });
  const requests: Requests = {
    api_key_missing: () => perform({ authorization: null }),
    api_key_invalid: () => perform({ authorization: "Bearer wrong" }),
    plain_http: () => perform(PLAIN_HTTP),
    rate_limited: () => perform({ bindings: { RATE_LIMIT: { limit: async () => ({ success: false }) } } }),
    internal_error: () => failWith("D1_ERROR: no such table: pets: SQLITE_ERROR"),
    store_unavailable: () => failWith("D1_ERROR: database is locked: SQLITE_BUSY"),
    closed: () => perform({ bindings: { MAINTENANCE: "" } }),
    ...ownErrors,
  };
  const examples = Object.values(operation.responses).flatMap(({ content }) =>
    Object.entries(content["application/json"].examples ?? {}),
  );

  describe(`${operationId}, like all operations,`, () => {
    it("describes exactly the errors that its test has a request for", () => {
      expect(examples.map(([code]) => code).sort()).toEqual(Object.keys(requests).sort());
    });

    it.each(examples)("sends the example of %s", async (code, { value }) => {
      vi.spyOn(console, "error").mockReturnValue();
      const answer = (await requests[code as ErrorCode]?.()) ?? expect.fail();
      expectError(answer, code as ErrorCode);
      expect(JSON.parse(answer.text)).toEqual(value);
    });

    it.each(STARTS)("with the bookmark %j, starts its session at %s, and returns one", async (bookmark, start) => {
      await insertRows(1);
      const withSession = vi.fn((start: string) => env.DB.withSession(start));
      const headers = bookmark === undefined ? {} : { "x-d1-bookmark": bookmark };
      const answer = await perform({ bindings: { DB: { withSession } as never }, headers });
      expect(answer.status).toBeLessThan(300);
      expect(answer.headers.get("x-d1-bookmark")).toMatch(BOOKMARK);
      expect(withSession.mock.calls).toEqual([[start]]);
    });
  });
}
