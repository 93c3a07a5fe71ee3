// The service sends every described error exactly as in its example.

import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { ADA, type Answer, call, createPet, EXAMPLE_CALLS, PLAIN_HTTP, REX, type RequestOptions } from "./call.ts";

type Errors = Record<string, () => Promise<Answer>>;

/** The errors of every operation. What D1 refuses is a failure whose message does not depend on the operation. */
function commonErrors(operationId: string): Errors {
  const perform = (options: RequestOptions) => EXAMPLE_CALLS[operationId]?.(options) ?? expect.fail();
  const failWith = (message: string) => perform({ bindings: { DB: failing(env.DB, new Error(message)) } });
  return {
    401: () => perform({ authorization: null }),
    403: () => perform(PLAIN_HTTP),
    405: () => call("/v1/pets", { method: "PUT" }),
    429: () => perform({ bindings: { RATE_LIMIT: { limit: async () => ({ success: false }) } } }),
    500: () => failWith("D1_ERROR: no such table: pets: SQLITE_ERROR"),
    503: () => failWith("D1_ERROR: database is locked: SQLITE_BUSY"),
  };
}

/** The other errors of each operation. */
const ERROR_REQUESTS: Record<string, Errors> = {
  listPets: {
    400: () => call("/v1/pets?limit=0&offset=20"),
  },
  createPet: {
    400: () => createPet('{"categoryId":1}'),
    413: () => createPet(new Uint8Array(16_385)),
    415: () => createPet(REX, { headers: { "Content-Type": "text/plain", "Content-Encoding": "gzip" } }),
    422: async () => {
      const headers = { "Idempotency-Key": "taken" };
      await createPet(REX, { headers });
      return createPet(ADA, { headers });
    },
  },
  getPet: {
    404: () => call("/v1/pets/1"),
    410: () => {
      vi.setSystemTime(Date.UTC(2030, 11, 5));
      return call("/v1/pets/1");
    },
  },
};

describe.each(describedOperations)("$operationId", (operation) => {
  const errors = Object.entries(operation.responses).filter(([status]) => Number(status) >= 400);

  it("has the errors that all operations share", () => {
    const { operationId, responses } = operation;
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(Object.keys(commonErrors(operationId))));
  });

  it.each(errors)("sends the example of %s", async (status, { content }) => {
    vi.spyOn(console, "error").mockReturnValue();
    const request = { ...commonErrors(operation.operationId), ...ERROR_REQUESTS[operation.operationId] }[status];
    if (!request) expect.fail(`Add a request to ERROR_REQUESTS for which ${operation.operationId} returns ${status}`);
    const { text } = await request();
    expect(JSON.parse(text)).toEqual(content?.["application/json"].example);
  });
});
