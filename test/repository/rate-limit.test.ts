// The rate limit in wrangler.toml, of which an operator can change `limit`.

import { expect, it } from "vitest";
import { unstable_readConfig as readConfig } from "wrangler";
import { readSections } from "../../scripts/environment.ts";
import { RETRY_AFTER } from "../../src/http/rate-limit.ts";

it("has the period that Retry-After announces, and counters of its own for each Worker", () => {
  const sections = Object.keys(readSections()).filter(Boolean);
  const limits = sections.flatMap((env) => readConfig({ config: "wrangler.toml", env }).ratelimits);
  for (const { name, simple } of limits) {
    expect([name, simple.period]).toEqual(["RATE_LIMIT", Number(RETRY_AFTER)]);
  }
  // 1001 is that of Cloudflare's example, which another Worker of the account could have.
  const counters = new Set(["1001", ...limits.map(({ namespace_id }) => namespace_id)]);
  expect(counters.size).toBe(1 + sections.length);
});
