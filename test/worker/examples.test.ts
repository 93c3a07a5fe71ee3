// The service sends every described error exactly as in its example.

import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { type DescribedOperation, describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { ADA, type Answer, call, createPet, PERFORM, PLAIN_HTTP, REX, type RequestOptions } from "./call.ts";

type Errors = Record<string, () => Promise<Answer>>;

/** The errors of every operation. */
function shared({ operationId, path, responses }: DescribedOperation): Errors {
  const perform = (options: RequestOptions) => PERFORM[operationId]?.(options) ?? expect.fail();
  // The example's message starts with its method.
  const [, wrong = ""] = /"message":"([A-Z]+) /.exec(JSON.stringify(responses[405])) ?? [];
  return {
    401: () => perform({ authorization: null }),
    403: () => perform(PLAIN_HTTP),
    429: () => perform({ bindings: { RATE_LIMIT: { limit: async () => ({ success: false }) } } }),
    405: () => call(`/v1${path}`, { method: wrong }),
    500: () => perform({ bindings: { DB: failing(env.DB, new Error("D1_ERROR: internal error")) } }),
    503: () => perform({ bindings: { DB: failing(env.DB, new Error("Network connection lost.")) } }),
  };
}

/** The other errors of each operation. */
const PROVOKED: Record<string, Errors> = {
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

  it.each(errors)("sends the example of %s", async (status, { content }) => {
    vi.spyOn(console, "error").mockReturnValue();
    const provoke = { ...shared(operation), ...PROVOKED[operation.operationId] }[status];
    if (!provoke) expect.fail(`Add a request to PROVOKED for which ${operation.operationId} returns ${status}`);
    const { text } = await provoke();
    expect(JSON.parse(text)).toEqual(content?.["application/json"].example);
  });
});
