// What a deployment learns from Wrangler itself, and from the service that it has deployed.

import { expect, it } from "vitest";
import { baseUrlOf } from "../../scripts/environment.ts";
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
  const [old, newer] = ["0123456789ab", "ba9876543210"];
  const commits = [newer, newer, newer, newer, old, "", newer, newer, newer, newer, newer, "unread"];
  const { origin, close } = await startServer((_, response) => {
    const commit = commits.shift();
    response.writeHead(401, commit ? { "Worker-Version": commit } : {}).end();
  });
  await waitUntilServed(`${origin}/v1`, newer);
  expect(commits).toEqual(["unread"]);
  const waiting = () => waitUntilServed(`${origin}/v1`, newer, 0);
  const message = `${origin}/v1 serves an unknown commit (status 401), and not commit ${newer}.`;
  await expect(waiting()).rejects.toThrow(message);
  close();
  await expect(waiting()).rejects.toThrow("serves an unknown commit (fetch failed)");
});
