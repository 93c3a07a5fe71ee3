// What the description gives as the example of a refusal, the service says word for word.

import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { operations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { type Answer, type Call, call, create, OPERATIONS } from "./service.ts";

type Refusals = Record<string, () => Promise<Answer>>;

const REX = { name: "Rex", categoryId: 1 };

/** The refusals that every operation shares. */
const shared = (path: string, perform: (options: Call) => Promise<Answer>): Refusals => ({
  401: () => perform({ authorization: null }),
  405: () => call(path, { method: "DELETE" }),
  500: () => perform({ bindings: { API_KEY: "" } }),
  503: () => perform({ bindings: { DB: failing(env.DB, new Error("Network connection lost.")) } }),
});

const PROVOKED: Record<string, Refusals> = {
  listPets: {
    ...shared("/v1/pets", OPERATIONS.listPets),
    400: () => call("/v1/pets?limit=0&offset=20"),
  },
  createPet: {
    ...shared("/v1/pets", OPERATIONS.createPet),
    400: () => create({ categoryId: "1" }),
    413: () => create(new Uint8Array(64 * 1024 + 1)),
    415: () => create(REX, { headers: { "Content-Type": "text/plain" } }),
    422: async () => {
      const headers = { "Idempotency-Key": "taken" };
      await create(REX, { headers });
      return create({ ...REX, categoryId: 2 }, { headers });
    },
  },
  getPet: {
    ...shared("/v1/pets/1", OPERATIONS.getPet),
    400: () => call("/v1/pets/1", { headers: { "x-d1-bookmark": "x" } }),
    404: () => call("/v1/pets/1"),
    410: () => {
      vi.setSystemTime(Date.UTC(2030, 11, 5));
      return call("/v1/pets/1");
    },
  },
};

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe.each(operations)("$operationId", ({ operationId, responses }) => {
  const refusals = Object.entries(responses).filter(([status]) => Number(status) >= 400);

  it.each(refusals)("answers %s as its example", async (status, { content }) => {
    vi.spyOn(console, "error").mockReturnValue();
    const answer = await PROVOKED[operationId]?.[status]?.();
    expect(JSON.parse(answer?.text ?? "null")).toEqual(content["application/json"]?.example);
  });
});
