import { env } from "cloudflare:workers";
import { expect, it, vi } from "vitest";
import { describedOperations } from "../conformance.ts";
import { failing } from "./binding.ts";
import { call, expectError, type RequestOptions, requestTo } from "./call.ts";

const CLOSED = {
  code: "service_unavailable",
  message: "The service is closed for maintenance, and this request was not carried out; try again later.",
  status: 503,
};

const REQUESTS: [path: string, options: RequestOptions][] = [
  ...describedOperations.map((operation) => requestTo(operation, { headers: { "Idempotency-Key": "key" } })),
  ["/v1/pets/", {}],
  ["/v1/pets", { method: "PURGE" }],
];

it.each(REQUESTS)(
  "while MAINTENANCE exists, whatever its value, the service is closed: %s %j",
  async (path, options) => {
    const log = vi.spyOn(console, "error");
    for (const MAINTENANCE of ["", "off"]) {
      // If an operation used the database, the failure would be logged.
      const bindings = { DB: failing(env.DB, new Error("touched")), MAINTENANCE };
      const answer = await call(path, { ...options, bindings });
      expectError(answer, CLOSED);
      expect(answer.headers.get("Retry-After")).toBe("30");
      expect((await call(path, { ...options, bindings, authorization: null })).status).toBe(401);
      expect((await call(path, { bindings, method: "OPTIONS", authorization: null })).status).toBe(204);
    }
    expect(log).not.toHaveBeenCalled();
  },
);

it("while MAINTENANCE exists, what is outside /v1 is not closed", async () => {
  expect((await call("/nothing", { bindings: { MAINTENANCE: "" }, authorization: null })).status).toBe(404);
});
