// What a deployment learns from Wrangler itself, and from the service that it has deployed.

import { expect, it } from "vitest";
import { baseUrlOf } from "../../scripts/deploy.ts";
import { waitUntilServed } from "../../scripts/wait-for-commit.ts";
import { startServer } from "../server.ts";

it.each([
  [["api.example.com (custom domain)"], "https://api.example.com/v1"],
  [["api.example.com (custom domain - zone id: 1)", "https://a.b.workers.dev"], "https://a.b.workers.dev/v1"],
])("of the targets %j, %j is the address", (targets, base) => expect(baseUrlOf(targets)).toBe(base));

it("fails if Wrangler reports neither an address of workers.dev nor a custom domain", () => {
  const targets = ["schedule: 0 3 * * *", "example.com/* (zone name: example.com)"];
  expect(() => baseUrlOf(targets)).toThrow("Wrangler reports no address");
});

it("waits until five answers in a row name the commit", async () => {
  const commits = ["new", "new", "new", "new", "0ld", "", "new", "new", "new", "new", "new", "unread"];
  const { origin, close } = await startServer((_, response) => {
    const commit = commits.shift();
    response.writeHead(401, commit ? { "Worker-Version": commit } : {}).end();
  });
  await waitUntilServed(`${origin}/v1`, "new");
  expect(commits).toEqual(["unread"]);
  const waiting = waitUntilServed(`${origin}/v1`, "0ther", 0);
  await expect(waiting).rejects.toThrow(`${origin}/v1 serves unread, and not commit 0ther.`);
  await expect(waitUntilServed(`${origin}/v1`, "0ther", 0)).rejects.toThrow("serves no Worker of ours (status 401)");
  close();
  await expect(waitUntilServed(`${origin}/v1`, "new", 0)).rejects.toThrow("serves nothing (fetch failed)");
});
