// What a deployment learns from Wrangler itself, and from the service that it has deployed.

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { baseIn } from "../../scripts/deploy.ts";
import { waitUntilServed } from "../../scripts/serving.ts";
import { wrangler } from "../../scripts/wrangler.ts";
import { removeProject } from "../dev-server.ts";
import { startServer } from "../server.ts";

it.each([
  [["api.example.com (custom domain)"], "https://api.example.com/v1"],
  [["api.example.com (custom domain - zone id: 1)", "https://a.b.workers.dev"], "https://a.b.workers.dev/v1"],
])("of the targets %j, %j is the address", (targets, base) => expect(baseIn(targets)).toBe(base));

it("fails if Wrangler reports neither an address of workers.dev nor a custom domain", () => {
  const targets = ["schedule: 0 3 * * *", "example.com/* (zone name: example.com)"];
  expect(() => baseIn(targets)).toThrow("Wrangler reports no address");
});

it("waits until five answers in a row are from a Worker whose page names the commit", async () => {
  const pages = ["new", "new", "new", "new", "new-dirty", "new", "new", "new", "new", "new", "unread"];
  let requests = 0;
  const { origin, close } = await startServer(({ url }, response) => {
    if (requests++ > 0) response.setHeader("Worker-Version", "version");
    response.end(url === "/" && `built from commit <code>${pages.shift()}</code>`);
  });
  await waitUntilServed(`${origin}/v1`, "new");
  expect(pages).toEqual(["unread"]);
  const waiting = waitUntilServed(`${origin}/v1`, "0ther", 0);
  await expect(waiting).rejects.toThrow(`${origin}/v1 serves unread, and not commit 0ther.`);
  close();
  await expect(waitUntilServed(`${origin}/v1`, "new", 0)).rejects.toThrow("serves nothing (fetch failed)");
});

it("Wrangler itself knows the flags, writes the report, and keeps the names of the code and of the Worker", () => {
  const folder = mkdtempSync(join(tmpdir(), "animal-store-"));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    removeProject(folder);
  });
  const WRANGLER_OUTPUT_FILE_PATH = join(folder, "report.jsonl");
  vi.stubEnv("WRANGLER_CI_OVERRIDE_NAME", "other");
  const flags = ["--env", "staging", "--tag", "c0ffee", "--dry-run", "--outdir", folder];
  wrangler(["deploy", ...flags], { env: { WRANGLER_OUTPUT_FILE_PATH, IN_DEPLOYMENT: "true" }, output: "pipe" });
  const [, report = ""] = readFileSync(WRANGLER_OUTPUT_FILE_PATH, "utf8").split("\n");
  expect(JSON.parse(report)).toMatchObject({ type: "deploy", worker_name: "animal-store-staging" });
  expect(readFileSync(join(folder, "index.js"), "utf8")).toMatch(/^(async )?function createPet\(/m);
});
