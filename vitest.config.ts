import { readFile } from "node:fs/promises";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const API_KEY = "first-key,second-key";

const worker = cloudflareTest(async () => {
  // Where Wrangler looks for the secret when it reads wrangler.toml, which it does, and says, for each file.
  Object.assign(process.env, { API_KEY, WRANGLER_LOG: "warn" });
  const MIGRATIONS = await readD1Migrations("migrations");
  return { wrangler: { configPath: "wrangler.toml" }, miniflare: { bindings: { API_KEY, MIGRATIONS } } };
});

// Loaded so, its files come without their source maps, which name sources that the package does not hold: Vite warns of those.
const ittyRouter: Plugin = {
  name: "itty-router-without-source-maps",
  load: { filter: { id: /\/node_modules\/itty-router\// }, handler: (id) => readFile(id, "utf8") },
};

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [worker, ittyRouter],
        test: {
          name: "worker",
          include: ["test/worker/**/*.test.ts"],
          setupFiles: ["test/worker/setup.ts"],
          // From Vitest's cache of modules the pool for Workers takes no source maps: failures would point at wrong lines.
          fsModuleCache: false,
        },
      },
      {
        test: {
          name: "http",
          include: ["test/http/**/*.test.ts"],
          globalSetup: "test/http/global-setup.ts",
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "backup",
          include: ["test/backup/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "deploy",
          include: ["test/deploy/**/*.test.ts"],
          // They mostly wait, so they run side by side even where there are two processors; after all others.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
