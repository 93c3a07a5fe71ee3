import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

const worker = cloudflareTest(async () => ({
  wrangler: { configPath: "wrangler.toml" },
  miniflare: { bindings: { API_KEY: "first-key,second-key", MIGRATIONS: await readD1Migrations("migrations") } },
}));

export default defineConfig({
  test: {
    projects: [
      {
        plugins: [worker],
        test: { name: "worker", include: ["test/worker/**/*.test.ts"], setupFiles: ["test/worker/setup.ts"] },
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
    ],
  },
});
