// The parts of Cloudflare's API that Wrangler uses for a Worker with a database, so that the real Wrangler can deploy to
// the account of account.ts. It runs SQL, and keeps what was uploaded without running it. An unknown request is answered with 404 and
// reported.

import { DatabaseSync } from "node:sqlite";
import { buffer } from "node:stream/consumers";
import { type IRequestStrict, Router } from "itty-router";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";
import { startAccount } from "./account.ts";
import { startServer } from "./server.ts";

const PATH = "/client/v4/accounts/account";
const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";

const ok = (result: unknown) => Response.json({ success: true, errors: [], messages: [], result });
const refuse = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

export async function startCloudflare() {
  const account = await startAccount();
  account.traffic = undefined;
  const sqlite = new DatabaseSync(":memory:");
  const cloudflare = Object.assign(account, {
    sqlite,
    databases: [] as Record<string, string>[],
    /** The annotations and the modules of each upload. */
    uploads: [] as { annotations?: Record<string, string>; modules: string }[],
    /** The requests to the API, such as `POST /d1/database`. */
    requests: [] as string[],
    /** How the next imports break: before they start, or after they stored everything. */
    importFaults: [] as ("before" | "after")[],
  });

  const router = Router<IRequestStrict>({ base: PATH });
  router.all("*", ({ method, url }) => {
    const request = `${method} ${new URL(url).pathname.replace(PATH, "")}`;
    cloudflare.requests.push(request);
    account.onMoment(request);
  });

  router.get("/d1/database/:id", ({ params }) => {
    const database = cloudflare.databases.find(({ uuid, name }) => [uuid, name].includes(params["id"]));
    return database ? ok(database) : refuse(404, 7404, "The database does not exist.");
  });
  const run = (sql: string, params: string[] = []) =>
    splitSqlQuery(sql).map((statement) => ({
      success: true,
      meta: {},
      results: sqlite.prepare(statement).all(...params),
    }));
  router.post("/d1/database/:id/query", async (request) => {
    const { sql, params } = (await request.json()) as { sql: string; params?: string[] };
    return ok(run(sql, params));
  });
  router.get("/d1/database/:id/time_travel/bookmark", () => ok({ bookmark: BOOKMARK }));

  // A SQL file is announced, uploaded to the URL in the response, and then run. D1 does not tell why an import fails.
  const files = new Map<string, string>();
  router.post("/d1/database/:id/import", async (request) => {
    const { action, etag } = (await request.json()) as { action: string; etag: string };
    if (action === "init")
      return ok({ success: true, upload_url: new URL(`${PATH}/files/${etag}`, request.url), filename: etag });
    const fault = cloudflare.importFaults.shift();
    if (fault === "before")
      return ok({ success: true, status: "error", messages: [], errors: ['{"D1_RESET_DO":true}'] });
    const results = run(files.get(etag) ?? "");
    if (fault === "after") return refuse(500, 7500, "Network connection lost.");
    const meta = { duration: 0, rows_read: 0, rows_written: 0, size_after: 0 };
    const result = { num_queries: results.length, final_bookmark: BOOKMARK, meta };
    return ok({ success: true, status: "complete", messages: [], result });
  });
  router.put("/files/:etag", async (request) => {
    const { etag = "" } = request.params;
    files.set(etag, await request.text());
    return new Response("", { headers: { ETag: `"${etag}"` } });
  });

  router.get("/workers/subdomain", () => ok({ subdomain: "operator" }));
  router.post("/workers/scripts/:name/assets-upload-session", () => ok({ jwt: "jwt", buckets: [] }));

  // Everything else is about a Worker that exists.
  router.all("/workers/*", () =>
    account.traffic ? undefined : refuse(404, 10007, "This Worker does not exist on your account."),
  );
  router.post("/workers/scripts/:name/versions", async (request) => {
    const form = await request.formData();
    const { annotations } = JSON.parse(String(form.get("metadata")));
    const modules = await Promise.all([...form.values()].map((part) => (typeof part === "string" ? "" : part.text())));
    cloudflare.uploads.push({ annotations, modules: modules.join("\n") });
    const id = `version${cloudflare.uploads.length}`;
    return ok({ id, startup_time_ms: 1, metadata: {}, resources: { script: {} } });
  });
  router.get("/workers/scripts/:name/secrets", () =>
    ok(account.secrets.map((name) => ({ name, type: "secret_text" }))),
  );
  const metadata = { created_on: new Date().toISOString(), source: "wrangler", author_email: "" };
  router.get("/workers/scripts/:name/versions/:id", ({ params: { id } }) =>
    ok({ id, metadata, resources: { script: {}, script_runtime: {}, bindings: [] } }),
  );
  router.get("/workers/scripts/:name/deployments", () =>
    ok({ deployments: [{ ...metadata, id: "deployment", versions: account.versions() }] }),
  );
  router.post("/workers/scripts/:name/deployments", async (request) => {
    const { versions } = (await request.json()) as { versions: { version_id: string; percentage: number }[] };
    account.traffic = versions.map(({ version_id, percentage }) => `${version_id}@${percentage}%`).join(" ");
    return ok({ id: "deployment" });
  });
  // What Wrangler reads of a Worker at various paths.
  const subdomain = { enabled: true, previews_enabled: false };
  const worker = () => {
    const bindings = [{ type: "d1", name: "DB", id: cloudflare.databases[0]?.["uuid"] }];
    return { ...subdomain, subdomain, default_environment: { script: { tag: null, tags: [] } }, bindings };
  };
  for (const path of ["services/:name", "workers/:name", "scripts/:name/:part"]) {
    router.all(`/workers/${path}`, () => ok(worker()));
  }
  router.all("*", ({ method, url }) => {
    console.error(`The stand-in for Cloudflare's API does not know ${method} ${url}`);
    return refuse(404, 7003, "The stand-in does not know this.");
  });

  const { origin, close } = await startServer(async (incoming, outgoing) => {
    const { method = "GET" } = incoming;
    const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const body = await buffer(incoming);
    const request = new Request(new URL(incoming.url ?? "", origin), {
      method,
      headers,
      ...(body.length > 0 && { body }),
    });
    const answer: Response = await router.fetch(request).catch((failure: Error) => refuse(500, 1, failure.message));
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  const end = account[Symbol.asyncDispose];

  return Object.assign(cloudflare, {
    /** The environment variables with which Wrangler uses this account. */
    env: {
      CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
    },
    [Symbol.asyncDispose]: async () => {
      close();
      await end();
    },
  });
}
