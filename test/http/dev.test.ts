// What only a real connection shows: the README's own commands, bodies without a length, methods that fetch refuses.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { copyProject, type DevServer, removeProject, startDev } from "./dev-server.ts";

let server: DevServer;

beforeAll(async () => {
  server = await startDev(copyProject());
});

afterAll(async () => {
  await server.stop();
  removeProject(server.folder);
});

interface Answer {
  status: number | undefined;
  headers: Record<string, unknown>;
  text: string;
}

/** One request as node:http sends it: any method, and a chunked body, whose end is not sent where `ends` is false. */
function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body: Iterable<string> = [],
  ends = true,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(server.origin + path, { method, headers }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (data) => (text += data));
      incoming.on("end", () => {
        resolve({ status: incoming.statusCode, headers: incoming.headers, text });
        outgoing.destroy();
      });
    });
    outgoing.on("error", reject);
    for (const piece of body) outgoing.write(piece);
    if (ends) outgoing.end();
  });
}

const KEY = { Authorization: "Bearer local-key" };
const JSON_BODY = { ...KEY, "Content-Type": "application/json" };

describe("npm run dev", () => {
  it("makes the local key from the example", () => {
    expect(readFileSync(join(server.folder, ".dev.vars"), "utf8")).toContain("API_KEY=local-key");
  });

  it("keeps animals and a key of one's own over a restart", async () => {
    await send("POST", "/v1/pets", JSON_BODY, ['{"name":"Kept","categoryId":1}']);
    await server.stop();
    writeFileSync(join(server.folder, ".dev.vars"), "API_KEY=local-key,another\n");
    server = await startDev(server.folder);
    const { status, text } = await send("GET", "/v1/pets?limit=100", { Authorization: "Bearer another" });
    expect(status).toBe(200);
    expect(text).toContain('"Kept"');
  });

  it("answers the README's first curl with what the README says", () => {
    const readme = readFileSync("README.md", "utf8");
    const curl = readme.match(/^curl .*$/m)?.[0].replace("http://localhost:8787", server.origin) ?? "";
    const expected = readme.match(/```json\n(.*)\n/)?.[1] ?? "";
    const anyId = (text: string) => text.replace(/"id":\d+/, '"id":N');
    expect(anyId(execFileSync("sh", ["-c", `${curl} --silent --show-error`], { encoding: "utf8" }))).toBe(
      anyId(expected),
    );
  });
});

describe("over HTTP", () => {
  it("keeps int64 exact from createPet to getPet", async () => {
    for (const categoryId of ["9223372036854775807", "-9223372036854775808"]) {
      const created = await send("POST", "/v1/pets", JSON_BODY, [`{"name":"🐶","categoryId":${categoryId}}`]);
      expect(created.status).toBe(201);
      expect(created.text).toContain(`"categoryId":${categoryId},`);
      const got = await send("GET", String(created.headers["location"]), KEY);
      expect(got.text).toBe(created.text);
    }
  });

  it("answers HEAD without a body", async () => {
    const { status, headers, text } = await send("HEAD", "/v1/pets", KEY);
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json");
    expect(text).toBe("");
  });

  it("refuses a body that announces no length at the limit, before its end, and goes on", async () => {
    const { status, text } = await send("POST", "/v1/pets", JSON_BODY, Array(65).fill("x".repeat(1024)), false);
    expect(status).toBe(413);
    expect(JSON.parse(text)).toEqual({
      code: "content_too_large",
      message: "The body must be at most 65536 bytes.",
      status: 413,
    });
    expect((await send("GET", "/v1/pets", KEY)).status).toBe(200);
  });

  it.each(["PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])("answers %s with 405 and Allow", async (method) => {
    const { status, headers, text } = await send(method, "/v1/pets", KEY);
    expect(JSON.parse(text).code).toBe("method_not_allowed");
    expect(status).toBe(405);
    expect(headers["allow"]).toBe("GET, HEAD, POST, OPTIONS");
  });

  it("refuses two Authorization headers", async () => {
    const { status } = await send("GET", "/v1/pets", { Authorization: "Bearer local-key, Bearer local-key" });
    expect(status).toBe(401);
  });
});
