// A simulated Cloudflare account: the parts of the API that Wrangler uses for Workers with a database, and the Workers'
// addresses. It runs SQL, but not what was uploaded: a version answers with its id, its commit, and what its secrets
// say. Commands that have its `env` use it instead of the real one. An unknown request gets 404 and is reported.

import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { buffer } from "node:stream/consumers";
import { type IRequestStrict, Router } from "itty-router";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";
import { CLOSED } from "../src/http/maintenance.ts";
import { startServer } from "./server.ts";

const PATH = "/client/v4/accounts/account";
const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";
const DOMAIN = ".operator.workers.dev";

interface Version {
  id: string;
  /** The commit, or empty for a version that `secret put` has made. */
  commit: string;
  secrets: Record<string, string>;
  /** The text of everything that was uploaded. */
  modules: string;
}

const ok = (result: unknown) => Response.json({ success: true, errors: [], messages: [], result });
const refuse = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

export async function startCloudflare() {
  /** The versions of each Worker, the newest first, which is not always the one that serves. */
  const workers = new Map<string, Version[]>();
  const addVersion = (name: string, change: Partial<Version>): Version => {
    const [newest] = workers.get(name) ?? [];
    const version = { commit: "", secrets: {}, modules: "", ...newest, ...change, id: randomUUID() };
    workers.set(name, [version, ...(workers.get(name) ?? [])]);
    return version;
  };
  const account = {
    /** The databases by name. The id of one is its name. */
    databases: {} as Record<string, DatabaseSync>,
    /** The version that each Worker serves. */
    live: {} as Record<string, Version | undefined>,
    /** The requests to the API, such as `GET /d1/database`, and to Workers, such as `GET animal-store-staging/v1`. */
    requests: [] as string[],
    /** Called before each request. What it returns is waited for. */
    onRequest: (_request: string): unknown => undefined,
    /** How the next imports break: before they start, or after they stored everything. */
    importFaults: [] as ("before" | "after")[],
    /** What `d1 create`, `secret put` and `secret delete` do. The latter two put a version with other secrets live. */
    create: (name: string) => (account.databases[name] = new DatabaseSync(":memory:")),
    setSecrets: (name: string, secrets: Record<string, string>) =>
      (account.live[name] = addVersion(name, { secrets, commit: account.live[name]?.commit ?? "" })),
  };

  const api = Router<IRequestStrict>({ base: PATH });
  api.get("/d1/database", () => ok(Object.keys(account.databases).map((name) => ({ uuid: name, name }))));
  api.all("/d1/database/:id/*?", ({ params: { id = "" } }) =>
    account.databases[id] ? undefined : refuse(404, 7404, "The database does not exist."),
  );
  api.get("/d1/database/:id", ({ params: { id } }) => ok({ uuid: id, name: id }));
  const run = (database = "", sql: string, params: string[] = []) =>
    splitSqlQuery(sql).map((statement) => ({
      success: true,
      meta: {},
      results: account.databases[database]?.prepare(statement).all(...params),
    }));
  api.post("/d1/database/:id/query", async (request) => {
    const { sql, params } = (await request.json()) as { sql: string; params?: string[] };
    return ok(run(request.params["id"], sql, params));
  });
  api.get("/d1/database/:id/time_travel/bookmark", () => ok({ bookmark: BOOKMARK }));

  // A SQL file is announced, uploaded to the URL in the response, and then run. D1 does not tell why an import fails.
  const files = new Map<string, string>();
  api.post("/d1/database/:id/import", async (request) => {
    const { action, etag } = (await request.json()) as { action: string; etag: string };
    if (action === "init")
      return ok({ success: true, upload_url: new URL(`${PATH}/files/${etag}`, request.url), filename: etag });
    const fault = account.importFaults.shift();
    if (fault === "before")
      return ok({ success: true, status: "error", messages: [], errors: ['{"D1_RESET_DO":true}'] });
    const results = run(request.params["id"], files.get(etag) ?? "");
    if (fault === "after") return refuse(500, 7500, "Network connection lost.");
    const meta = { duration: 0, rows_read: 0, rows_written: 0, size_after: 0 };
    const result = { num_queries: results.length, final_bookmark: BOOKMARK, meta };
    return ok({ success: true, status: "complete", messages: [], result });
  });
  api.put("/files/:etag", async (request) => {
    const { etag = "" } = request.params;
    files.set(etag, await request.text());
    return new Response("", { headers: { ETag: `"${etag}"` } });
  });

  api.get("/workers/subdomain", () => ok({ subdomain: "operator" }));
  api.post("/workers/scripts/:name/assets-upload-session", () => ok({ jwt: "jwt", buckets: [] }));
  const upload = async (request: IRequestStrict): Promise<Version> => {
    const form = await request.formData();
    const { annotations } = JSON.parse(String(form.get("metadata")));
    const modules = await Promise.all([...form.values()].map((part) => (typeof part === "string" ? "" : part.text())));
    const commit = annotations?.["workers/tag"] ?? "";
    return addVersion(request.params["name"] ?? "", { commit, modules: modules.join("\n") });
  };
  const uploaded = ({ id }: Version) =>
    ok({ id, deployment_id: id, startup_time_ms: 1, metadata: {}, resources: { script: {} } });
  // The first upload makes a Worker, and puts the version live.
  api.put("/workers/scripts/:name", async (request) => {
    const version = await upload(request);
    account.live[request.params["name"] ?? ""] = version;
    return uploaded(version);
  });

  // Everything else is about a Worker that exists.
  api.all("/workers/:part/:name/*", ({ params: { name = "" } }) =>
    workers.has(name) ? undefined : refuse(404, 10007, "This Worker does not exist on your account."),
  );
  api.post("/workers/scripts/:name/versions", async (request) => uploaded(await upload(request)));
  const secretsOf = (version?: Version) =>
    Object.keys(version?.secrets ?? {}).map((name) => ({ name, type: "secret_text" }));
  api.get("/workers/scripts/:name/secrets", ({ params: { name = "" } }) => ok(secretsOf(workers.get(name)?.[0])));
  const metadata = { created_on: new Date().toISOString(), source: "wrangler", author_email: "" };
  api.get("/workers/scripts/:name/versions/:id", ({ params: { name = "", id } }) => {
    const bindings = secretsOf(workers.get(name)?.find((version) => version.id === id));
    return ok({ id, metadata, resources: { script: {}, script_runtime: {}, bindings } });
  });
  api.get("/workers/scripts/:name/deployments", ({ params: { name = "" } }) => {
    const versions = [{ version_id: account.live[name]?.id, percentage: 100 }];
    return ok({ deployments: [{ ...metadata, id: "deployment", versions }] });
  });
  api.post("/workers/scripts/:name/deployments", async (request) => {
    const { versions } = (await request.json()) as { versions: { version_id: string }[] };
    const { name = "" } = request.params;
    account.live[name] = workers.get(name)?.find(({ id }) => id === versions[0]?.version_id);
    return ok({ id: "deployment" });
  });
  // What Wrangler reads of a Worker at various paths.
  const subdomain = { enabled: true, previews_enabled: false };
  const worker = { ...subdomain, subdomain, default_environment: { script: { tag: null, tags: [] } }, bindings: [] };
  for (const path of ["services/:name", "workers/:name", "scripts/:name/:part"]) {
    api.all(`/workers/${path}`, () => ok(worker));
  }
  api.all("*", ({ method, url }) => {
    console.error(`The simulated account does not know ${method} ${url}`);
    return refuse(404, 7003, "The simulated account does not know this.");
  });

  /** What a version answers at its address: its page, and under /v1 what a key is told. */
  function answer({ url, headers }: Request, version?: Version): Response {
    if (!version) return new Response("There is nothing here yet", { status: 404 });
    if (new URL(url).pathname === "/") return new Response(`built from commit <code>${version.commit}</code>`);
    const key = headers.get("Authorization")?.replace("Bearer ", "");
    const [secret] = Object.entries(version.secrets).find(([, value]) => value === key) ?? [];
    const closed = "MAINTENANCE" in version.secrets;
    return new Response(closed ? CLOSED : "[]", {
      status: !secret ? 401 : closed ? 503 : 200,
      headers: { "Worker-Version": version.id, ...(secret && { "API-Key-Name": secret }) },
    });
  }

  const { origin, close } = await startServer(async (incoming, outgoing) => {
    const { method = "GET", url = "/" } = incoming;
    const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const body = await buffer(incoming);
    const request = new Request(new URL(url, origin), { method, headers, ...(body.length > 0 && { body }) });
    const name = request.headers.get("x-host")?.replace(DOMAIN, "") ?? "";
    const moment = `${method} ${name}${new URL(request.url).pathname.replace(PATH, "")}`;
    account.requests.push(moment);
    await account.onRequest(moment);
    const response: Response = name
      ? answer(request, account.live[name])
      : await api.fetch(request).catch((failure: Error) => refuse(500, 1, failure.message));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
  });

  return Object.assign(account, {
    /** The environment variables with which Wrangler uses this account, and `fetch` finds its Workers. */
    env: {
      CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(leadTo(origin))}`,
    },
    [Symbol.asyncDispose]: async () => close(),
  });
}

/** A module that replaces fetch, so that it finds the Workers of the account. */
const leadTo = (origin: string) => `
const real = fetch;
globalThis.fetch = (address, init) => {
  const { host = "", pathname, search } = URL.parse(address) ?? {};
  if (!host.endsWith("${DOMAIN}")) return real(address, init);
  return real("${origin}" + pathname + search, { ...init, headers: { ...init?.headers, "x-host": host } });
};`;
