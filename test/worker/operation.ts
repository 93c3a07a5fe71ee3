// What all operations do: each error exactly as in its example, and sessions that start at the caller's bookmark.

import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { described } from "../conformance.ts";
import { failing } from "./binding.ts";
import { type Answer, EXAMPLE_CALLS, insertRows, PLAIN_HTTP } from "./call.ts";

const BOOKMARK = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/;
const GIVEN = "00000001-00000002-00000003-0123456789abcdef0123456789abcdef";
const NOT_BOOKMARKS = ["", "first-unconstrained", GIVEN.toUpperCase(), GIVEN.slice(1), `${GIVEN}, ${GIVEN}`];

/** Tests one operation, with its example and the id 1. `ownErrors`: a request for each error that not all have. */
export function testOperation(operationId: string, ownErrors: Record<number, () => Promise<Answer>>): void {
  const operation = described(operationId);
  const perform = EXAMPLE_CALLS[operationId] ?? expect.fail();
  // What D1 refuses is a failure whose message does not depend on the operation.
  const failWith = (message: string) => perform({ bindings: { DB: failing(env.DB, new Error(message)) } });
  const exampleOf = (status: string) => operation.responses[status]?.content?.["application/json"].example;
  const commonErrors = {
    401: () => perform({ authorization: null }),
    403: () => perform(PLAIN_HTTP),
    429: () => perform({ bindings: { RATE_LIMIT: { limit: async () => ({ success: false }) } } }),
    500: () => failWith("D1_ERROR: no such table: pets: SQLITE_ERROR"),
    503: () => failWith("D1_ERROR: database is locked: SQLITE_BUSY"),
  };
  const requests: Record<string, () => Promise<Answer>> = { ...commonErrors, ...ownErrors };
  const errors = Object.keys(operation.responses).filter((status) => Number(status) >= 400);

  describe(`${operationId}, like all operations,`, () => {
    it("describes exactly the errors that its test has a request for", () => {
      expect(errors).toEqual(Object.keys(requests));
    });

    it.each(errors)("sends the example of %s", async (status) => {
      vi.spyOn(console, "error").mockReturnValue();
      const answer = await requests[status]?.();
      expect(JSON.parse(answer?.text ?? "")).toEqual(exampleOf(status));
    });

    it("starts an unconstrained session, and returns a bookmark", async () => {
      expect(await sessionWith()).toEqual("first-unconstrained");
    });

    it("starts its session at the bookmark of the request", async () => {
      expect(await sessionWith({ "x-d1-bookmark": GIVEN })).toEqual(GIVEN);
    });

    it.each(NOT_BOOKMARKS)("reads from the primary if the bookmark is %j, which is not one", async (bookmark) => {
      expect(await sessionWith({ "x-d1-bookmark": bookmark })).toEqual("first-primary");
    });
  });

  /** Performs the operation, asserts that it succeeds with a bookmark, and returns how its session started. */
  async function sessionWith(headers: Record<string, string> = {}): Promise<unknown> {
    await insertRows(1);
    const withSession = vi.fn((start: string) => env.DB.withSession(start));
    const { status, headers: received } = await perform({ bindings: { DB: { withSession } as never }, headers });
    expect(status).toBeLessThan(300);
    expect(received.get("x-d1-bookmark")).toMatch(BOOKMARK);
    expect(withSession).toHaveBeenCalledOnce();
    return withSession.mock.lastCall?.[0];
  }
}
