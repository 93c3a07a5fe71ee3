import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import type { Reporter } from "vitest/node";

// Wrangler is large, and tests start it dozens of times, so what is compiled of it is kept.
process.env["NODE_COMPILE_CACHE"] ??= join(tmpdir(), "animal-store-compile-cache");

const API_KEY = "first-key-for-tests";

async function workersRuntime() {
  // Not at the top, because the tests of a deployment would start a second later.
  const { cloudflareTest, readD1Migrations } = await import("@cloudflare/vitest-pool-workers");
  return cloudflareTest(async () => {
    // Wrangler looks for the secret here when it reads wrangler.toml, and would log that it found it.
    Object.assign(process.env, { API_KEY, WRANGLER_LOG: "warn" });
    const MIGRATIONS = await readD1Migrations("migrations");
    return {
      // Not the top level, which lets all secrets of a developer's .dev.vars in.
      wrangler: { configPath: "wrangler.toml", environment: "staging" },
      miniflare: { bindings: { API_KEY, API_KEY_SECOND: "second-key-for-tests", MIGRATIONS } },
    };
  });
}

// One runtime or process for several files starts faster than one for each. So a test undoes what it changes: Vitest
// itself restores variables only before the next test, and the next file may be imported first.
const SHARED = { isolate: false, restoreMocks: true, unstubEnvs: true };

const workerTests = async () => ({
  plugins: [await workersRuntime()],
  test: {
    name: "worker",
    include: ["test/worker/**/*.test.ts"],
    setupFiles: ["test/worker/fresh-database.ts"],
    // The pool for Workers ignores the source maps of cached modules: failures would point at the wrong lines.
    fsModuleCache: false,
    ...SHARED,
  },
});

/** Tests over HTTP. `mode`: "deployed" for all of them against a deployed service, "smoke" for its smoke test. */
const endToEnd = (mode: string) => ({
  test: {
    name: "end-to-end",
    include: [mode === "smoke" ? "test/end-to-end/smoke.test.ts" : "test/end-to-end/**/*.test.ts"],
    globalSetup: `test/end-to-end/${mode === "test" ? "local" : "deployed"}-setup.ts`,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    ...SHARED,
    expect: { poll: { timeout: 30_000 } },
  },
});

const otherTests = {
  test: { name: "other", include: ["test/{commands,repository}/**/*.test.ts"], testTimeout: 120_000, ...SHARED },
};

/** The default reporter only counts the tests that are skipped. Their titles say why. */
const whySkipped: Reporter = {
  onTestRunEnd(modules) {
    const skipped = modules.flatMap(({ children }) => [...children.allTests("skipped")]);
    const reasons = skipped.flatMap(({ fullName }) => /\(SKIPPED: (.*?)\)/.exec(fullName)?.[1] ?? []);
    if (reasons.length > 0) console.log(`Skipped: ${[...new Set(reasons)].join("; ")}.`);
  },
};

export default defineConfig(async ({ mode }) => ({
  test: {
    // A deployment waits for its tests, and callers have a commit that fails them.
    ...(mode !== "test" && { retry: 1, bail: 1 }),
    reporters: mode === "smoke" ? ["verbose"] : ["default", whySkipped],
    // With two processors Vitest would use only one worker, but these tests often wait for other processes.
    maxWorkers: 2,
    // The service logs the use of its keys, which tests change all the time.
    silent: "passed-only" as const,
    projects: mode === "test" ? [await workerTests(), endToEnd(mode), otherTests] : [endToEnd(mode)],
  },
}));
