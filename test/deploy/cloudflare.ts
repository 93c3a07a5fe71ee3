// A stand-in for the parts of Cloudflare that Wrangler uses to deploy a Worker with D1: its API stores what is uploaded, and
// the versions of the Worker run in the Workers runtime, at one address. An account has one Worker and one database. Assets
// are accepted and not served. An unknown request is answered with 404 and reported.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { type IRequestStrict, Router } from "itty-router";
import { Miniflare } from "miniflare";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";

const PATH = "/client/v4/accounts/account";
const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";

interface Version {
  id: string;
  created: string;
  annotations: Record<string, string>;
  modules: Record<string, string>;
  mainModule: string;
  compatibilityDate: string;
  /** The secret API_KEY. */
  keys: string;
}

interface Metadata {
  main_module: string;
  compatibility_date: string;
  bindings: { type: string; name: string; text?: string }[];
  keep_bindings?: string[];
  annotations?: Record<string, string>;
}

// It gives access to the database, which it shares with all versions.
const HUB: Version = {
  id: "hub",
  created: "",
  annotations: {},
  modules: { hub: "export default {}" },
  mainModule: "hub",
  compatibilityDate: "2026-10-23",
  keys: "",
};

const ok = (result: unknown) => Response.json({ success: true, errors: [], messages: [], result });
const refuse = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

export async function startCloudflare() {
  const account = {
    /** As requested at their creation: `primary_location_hint` or `jurisdiction`. */
    databases: [] as Record<string, string>[],
    /** The newest first. */
    versions: [] as Version[],
    /** The current deployment. */
    serving: [] as { version_id: string; percentage: number }[],
    /** The requests to the API, such as `POST /d1/database`. */
    requests: [] as string[],
    /** How the next imports break: before they start, or after they stored everything. */
    importFaults: [] as ("before" | "after")[],
    /** Called after each deployment. */
    onDeployment: () => {},
  };
  const { databases, versions, requests } = account;

  const options = () => ({
    host: "127.0.0.1",
    port: 0,
    workers: [HUB, ...versions].map(workerOf),
    handleStructuredLogs: () => {},
  });
  const runtime = new Miniflare(options());
  let last: Promise<unknown> = Promise.resolve();
  /** One use of the runtime at a time, because it must restart to load a version, which would cut off requests. */
  function use<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  }

  /** Runs all statements or none. Throws with SQLite's message. */
  const run = (sql: string, params: unknown[] = []) =>
    use(async () => {
      const db = await runtime.getD1Database("DB", HUB.id);
      const statements = splitSqlQuery(sql).map((statement) => db.prepare(statement).bind(...params));
      return db.batch<Record<string, unknown>>(statements);
    });

  const router = Router<IRequestStrict>({ base: PATH });
  router.all("*", ({ method, url }) => {
    requests.push(`${method} ${new URL(url).pathname.replace(PATH, "")}`);
  });

  router.get("/d1/database", () => ok(databases));
  router.post("/d1/database", async (request) => {
    databases.push({ uuid: randomUUID(), ...((await request.json()) as object) });
    return ok(databases.at(-1));
  });
  router.get("/d1/database/:id", ({ params }) => {
    const database = databases.find(({ uuid, name }) => [uuid, name].includes(params["id"]));
    return database ? ok(database) : refuse(404, 7404, "The database does not exist.");
  });
  router.post("/d1/database/:id/query", async (request) => {
    const { sql, params } = (await request.json()) as { sql: string; params?: unknown[] };
    return run(sql, params).then(ok, (failure) => refuse(400, 7500, String(failure)));
  });
  router.get("/d1/database/:id/time_travel/bookmark", () => ok({ bookmark: BOOKMARK }));

  // A SQL file is announced, uploaded to the URL in the response, and then run. D1 does not tell why an import fails.
  const files = new Map<string, string>();
  const reset = () => ok({ success: true, status: "error", messages: [], errors: ['{"D1_RESET_DO":true}'] });
  router.post("/d1/database/:id/import", async (request) => {
    const { action, etag } = (await request.json()) as { action: string; etag: string };
    if (action === "init")
      return ok({ success: true, upload_url: new URL(`${PATH}/files/${etag}`, request.url), filename: etag });
    const fault = account.importFaults.shift();
    if (fault === "before") return reset();
    try {
      const results = await run(files.get(etag) ?? "");
      if (fault === "after") return refuse(500, 7500, "Network connection lost.");
      const meta = { duration: 0, rows_read: 0, rows_written: 0, size_after: 0 };
      const result = { num_queries: results.length, final_bookmark: BOOKMARK, meta };
      return ok({ success: true, status: "complete", messages: [], result });
    } catch {
      return reset();
    }
  });
  router.put("/files/:etag", async (request) => {
    const { etag = "" } = request.params;
    files.set(etag, await request.text());
    return new Response("", { headers: { ETag: `"${etag}"` } });
  });

  router.get("/workers/subdomain", () => ok({ subdomain: "operator" }));
  router.post("/workers/scripts/:name/assets-upload-session", () => ok({ jwt: "jwt", buckets: [] }));

  /** Adds a version. The first one creates the Worker. */
  async function upload(request: IRequestStrict) {
    const form = await request.formData();
    const metadata = JSON.parse(String(form.get("metadata"))) as Metadata;
    const { main_module: mainModule, compatibility_date: compatibilityDate, annotations = {} } = metadata;
    const modules: Record<string, string> = {};
    for (const [path, part] of form) {
      if (typeof part !== "string" && !path.endsWith(".map")) modules[path] = await part.text();
    }
    const kept = metadata.keep_bindings?.includes("secret_text") ? versions[0]?.keys : undefined;
    const keys = metadata.bindings.find(({ type }) => type === "secret_text")?.text ?? kept ?? "";
    const id = randomUUID();
    const created = new Date().toISOString();
    versions.unshift({ id, created, annotations, modules, mainModule, compatibilityDate, keys });
    await use(() => runtime.setOptions(options()));
    return { id, startup_time_ms: 1, metadata: { has_preview: false }, resources: { script: { etag: "" } } };
  }

  const versionOf = (wanted = "") => versions.find(({ id }) => id === wanted) ?? HUB;

  router.put("/workers/scripts/:name", async (request) => {
    const { id } = await upload(request);
    account.serving = [{ version_id: id, percentage: 100 }];
    return ok({ deployment_id: id, startup_time_ms: 1 });
  });
  router.post("/workers/scripts/:name/versions", async (request) => ok(await upload(request)));
  // Everything else is about a Worker that exists.
  router.all("/workers/*", () =>
    versions.length > 0 ? undefined : refuse(404, 10007, "This Worker does not exist on your account."),
  );
  router.get("/workers/scripts/:name/secrets", () => ok([{ name: "API_KEY", type: "secret_text" }]));
  const metadata = { created_on: new Date().toISOString(), source: "wrangler", author_email: "" };
  router.get("/workers/scripts/:name/versions/:id", ({ params: { id } }) =>
    ok({ id, metadata, resources: { script: {}, script_runtime: {}, bindings: [] } }),
  );
  const deployment = () => ({ ...metadata, id: randomUUID(), versions: account.serving });
  router.get("/workers/scripts/:name/deployments", () => ok({ deployments: [deployment()] }));
  router.get("/workers/scripts/:name/versions", () =>
    ok({
      items: versions.map(({ id, created, annotations }) => ({ id, annotations, metadata: { created_on: created } })),
    }),
  );
  router.post("/workers/scripts/:name/deployments", async (request) => {
    const next = ((await request.json()) as { versions: typeof account.serving }).versions;
    // As for Cloudflare, an older version with other secrets needs a flag that only `wrangler rollback` sends.
    const [target, current] = [versionOf(next[0]?.version_id), versionOf(account.serving[0]?.version_id)];
    const isOlder = versions.indexOf(target) > versions.indexOf(current);
    if (isOlder && target.keys !== current.keys && request.query["force"] !== "true") {
      return refuse(400, 10220, "The following secrets have changed: API_KEY");
    }
    account.serving = next;
    account.onDeployment();
    return ok(deployment());
  });
  // What Wrangler reads of a Worker at various paths.
  const subdomain = { enabled: true, previews_enabled: false };
  const script = { tag: null, tags: [], last_deployed_from: "wrangler" };
  const worker = () => {
    const bindings = [{ type: "d1", name: "DB", id: databases[0]?.["uuid"] }];
    return { ...subdomain, subdomain, default_environment: { script }, bindings };
  };
  for (const path of ["services/:name", "workers/:name", "scripts/:name/:part"]) {
    router.all(`/workers/${path}`, () => ok(worker()));
  }
  router.all("*", ({ method, url }) => {
    console.error(`The stand-in for Cloudflare's API does not know ${method} ${url}`);
    return refuse(404, 7003, "The stand-in does not know this.");
  });

  /** The answer of the version with the greatest share, or of the one that the version override header names. */
  function serve({ url, method, headers }: Request, body: Buffer): Promise<Response> {
    const [, wanted] = /="(.+)"/.exec(headers.get("Cloudflare-Workers-Version-Overrides") ?? "") ?? [];
    const [first] = account.serving.toSorted((a, b) => b.percentage - a.percentage);
    const { version_id = "" } = account.serving.find(({ version_id }) => version_id === wanted) ?? first ?? {};
    return use(async () => {
      const version = await runtime.getWorker(version_id);
      const sent = { method, headers: Object.fromEntries(headers), ...(method !== "GET" && { body }) };
      const answer = await version.fetch(url, sent);
      return new Response(await answer.text(), { status: answer.status, headers: Object.fromEntries(answer.headers) });
    });
  }

  const server = createServer(async (incoming, outgoing) => {
    const url = new URL(incoming.url ?? "/", origin);
    const { method = "GET" } = incoming;
    const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const body = await buffer(incoming);
    const request = new Request(url, { method, headers, ...(method !== "GET" && { body }) });
    const isApi = url.pathname.startsWith(PATH);
    const answer: Response = await (isApi ? router.fetch(request) : serve(request, body)).catch((failure: unknown) =>
      refuse(500, 1, String(failure)),
    );
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  const origin = `http://127.0.0.1:${address && typeof address !== "string" ? address.port : ""}`;

  return Object.assign(account, {
    /** The environment variables with which Wrangler uses this account. */
    env: {
      CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
    },
    /** The base URL of the account's Worker. */
    base: `${origin}/v1`,
    /** Runs SQL in the database. Returns the rows of the last statement. */
    query: async (sql: string) => (await run(sql)).at(-1)?.results ?? [],
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await runtime.dispose();
    },
  });
}

function workerOf({ id, compatibilityDate, mainModule, modules, keys }: Version) {
  const sources = Object.entries(modules).map(([path, contents]) => [path, { type: "esm" as const, contents }]);
  const env = {
    DB: { type: "d1" as const, id: "database" },
    API_KEY: { type: "text" as const, value: keys },
    VERSION: { type: "json" as const, value: { id } },
  };
  return {
    config: { name: id, compatibilityDate, manifest: { mainModule, modules: Object.fromEntries(sources) }, env },
  };
}
