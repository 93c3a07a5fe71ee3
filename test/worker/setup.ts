// Every test starts with an empty database, created by the real migrations, on a day before getPet is removed.

import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, beforeEach, vi } from "vitest";
import { router } from "../../src/router.ts";
import { describedOperations } from "../conformance.ts";

// Otherwise one missing route or description would make dozens of tests fail, for different reasons.
beforeAll(() => {
  const routed = router.routes
    .filter(([method]) => !["ALL", "OPTIONS"].includes(method))
    .map(([method, , , path]) => `${method} ${path?.replaceAll(/:(\w+)/g, "{$1}")}`);
  const described = describedOperations.map(({ method, path }) => `${method} /v1${path}`);
  const [unrouted, undescribed] = [
    described.filter((one) => !routed.includes(one)),
    routed.filter((one) => !described.includes(one)),
  ];
  if (unrouted.length > 0) throw new Error(`src/router.ts has no route for ${unrouted.join(", ")}.`);
  if (undescribed.length > 0) throw new Error(`src/openapi/ does not describe ${undescribed.join(", ")}.`);
});

const queries = env.MIGRATIONS.flatMap((migration) => migration.queries);

beforeEach(async () => {
  vi.setSystemTime("2026-11-20");
  // One round trip, and so several times faster than applyD1Migrations, which also records each migration.
  await env.DB.batch(queries.map((query) => env.DB.prepare(query)));
});

// Not before each test: at the start of a file, reset() sometimes leaves what the previous file has stored.
afterEach(reset);
