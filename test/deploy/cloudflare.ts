// A stand-in for the parts of Cloudflare that Wrangler uses to deploy a Worker with D1: its API stores what is uploaded, and
// the versions of the Worker run in the Workers runtime, at one address. Assets are accepted and not served. An unknown
// request is answered with 404 and reported.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { type IRequestStrict, Router } from "itty-router";
import { Miniflare } from "miniflare";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";

const ACCOUNT = "account";
const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";
const DATE = "2026-10-23";
const IMPORT_BYTES = 10_000_000;

export interface Cloudflare extends AsyncDisposable {
  /** The environment variables with which Wrangler uses this account. */
  env: NodeJS.Dict<string>;
  /** The base URL of the account's Worker. */
  base: string;
  /** Every database of the account, by name. */
  databases: Map<string, Database>;
  /** The versions of the account's Worker, the newest first. */
  versions: Version[];
  /** The current deployment. */
  serving: Share[];
  /** The requests to the API, such as `POST /d1/database`. */
  requests: string[];
  /** Set to n, every n-th import breaks: by turns before it starts, and after it stored everything. 0: none does. */
  flakyImports: number;
  /** Runs SQL in a database. */
  query(database: string, sql: string): Promise<Record<string, unknown>[]>;
}

interface Database {
  uuid: string;
  name: string;
  /** As requested at its creation. */
  primary_location_hint?: string;
  jurisdiction?: string;
}

type Binding =
  | { type: "secret_text"; name: string; text: string }
  | { type: "d1"; name: string; id: string }
  | { type: "version_metadata"; name: string };

interface Version {
  id: string;
  annotations: Record<string, string>;
  bindings: Binding[];
  modules: Record<string, string>;
  compatibilityDate: string;
  mainModule: string;
}

interface Share {
  version_id: string;
  percentage: number;
}

interface Metadata {
  main_module: string;
  compatibility_date: string;
  bindings: (Binding | { type: "inherit"; name: string })[];
  keep_bindings?: string[];
  annotations?: Record<string, string>;
}

const ok = (result: unknown) => Response.json({ success: true, errors: [], messages: [], result });
const refuse = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

export async function startCloudflare(): Promise<Cloudflare> {
  const databases = new Map<string, Database>();
  const versions: Version[] = [];
  const files = new Map<string, string>();
  const requests: string[] = [];

  const runtime = new Miniflare(options());
  let last: Promise<unknown> = Promise.resolve();
  /** One use of the runtime at a time, because it must restart to load a change, which would cut off requests. */
  function use<T>(work: () => Promise<T>): Promise<T> {
    const result = last.then(work);
    last = result.catch(() => {});
    return result;
  }
  const reload = () => use(() => runtime.setOptions(options()));

  function options() {
    const bindings = [...databases.values()].map(({ uuid }) => ({ type: "d1" as const, name: uuid, id: uuid }));
    const hub = {
      id: "hub",
      bindings,
      modules: { hub: "export default {}" },
      mainModule: "hub",
      compatibilityDate: DATE,
    };
    return { host: "127.0.0.1", port: 0, workers: [hub, ...versions].map(workerOf), handleStructuredLogs: () => {} };
  }

  /** Runs all statements or none. Throws with SQLite's message. */
  const run = (uuid: string, sql: string, params: unknown[] = []) =>
    use(async () => {
      const db = await runtime.getD1Database(uuid, "hub");
      const statements = splitSqlQuery(sql).map((statement) => db.prepare(statement).bind(...params));
      return db.batch<Record<string, unknown>>(statements);
    });

  const router = Router<IRequestStrict>({ base: `/client/v4/accounts/${ACCOUNT}` });

  router.get("/d1/database", ({ query }) => {
    const found = [...databases.values()].filter(({ name }) => query["name"] === undefined || query["name"] === name);
    return ok(query["page"] === undefined || query["page"] === "1" ? found : []);
  });
  router.post("/d1/database", async (request) => {
    const wanted = (await request.json()) as Omit<Database, "uuid">;
    if (databases.has(wanted.name)) return refuse(400, 7502, "A database with this name exists.");
    const database = { ...wanted, uuid: randomUUID() };
    databases.set(database.name, database);
    await reload();
    return ok(database);
  });
  router.get("/d1/database/:id", ({ params }) => {
    const database = [...databases.values()].find(({ uuid, name }) => [uuid, name].includes(params["id"] ?? ""));
    return database ? ok(database) : refuse(404, 7404, "The database does not exist.");
  });
  router.post("/d1/database/:id/query", async (request) => {
    const { sql, params } = (await request.json()) as { sql: string; params?: unknown[] };
    try {
      return ok(await run(request.params["id"] ?? "", sql, params));
    } catch (failure) {
      return refuse(400, 7500, String(failure));
    }
  });

  // A SQL file is announced, uploaded to the URL in the response, and then run. Imports have been seen to fail beyond 5 MB,
  // and D1 does not tell why one fails.
  const reset = () => ok({ success: true, status: "error", messages: [], errors: ['{"D1_RESET_DO":true}'] });
  let imports = 0;
  router.post("/d1/database/:id/import", async (request) => {
    const { action, etag } = (await request.json()) as { action: string; etag: string };
    if (action === "init")
      return ok({ success: true, upload_url: new URL(`/files/${etag}`, request.url), filename: etag });
    const sql = files.get(etag) ?? "";
    const breaks = cloudflare.flakyImports > 0 && ++imports % cloudflare.flakyImports === 0;
    if (Buffer.byteLength(sql) > IMPORT_BYTES) return reset();
    if (breaks && (imports / cloudflare.flakyImports) % 2 === 1) return reset();
    try {
      const results = await run(request.params["id"] ?? "", sql);
      if (breaks) return refuse(500, 7500, "Network connection lost.");
      const rows_written = results.reduce((sum, { meta }) => sum + meta.rows_written, 0);
      const meta = { duration: 0, rows_read: 0, rows_written, size_after: 0 };
      const result = { num_queries: results.length, final_bookmark: BOOKMARK, meta };
      return ok({ success: true, status: "complete", messages: [], result });
    } catch {
      return reset();
    }
  });
  router.get("/d1/database/:id/time_travel/bookmark", () => ok({ bookmark: BOOKMARK }));

  const missing = () => refuse(404, 10007, "This Worker does not exist on your account.");
  const subdomain = { enabled: true, previews_enabled: false };
  router.get("/workers/subdomain", () => ok({ subdomain: "operator" }));
  router.post("/workers/scripts/:name/assets-upload-session", () => ok({ jwt: "jwt", buckets: [] }));

  /** Adds a version. The first one creates the Worker. */
  async function upload(request: IRequestStrict): Promise<string> {
    const form = await request.formData();
    const metadata = JSON.parse(String(form.get("metadata"))) as Metadata;
    const modules: Record<string, string> = {};
    for (const [path, part] of form) {
      if (typeof part !== "string" && !path.endsWith(".map")) modules[path] = await part.text();
    }
    const sent = metadata.bindings.filter((binding) => binding.type !== "inherit");
    const inherited = metadata.bindings.filter(({ type }) => type === "inherit").map(({ name }) => name);
    const kept = (versions[0]?.bindings ?? []).filter(
      ({ type, name }) =>
        inherited.includes(name) ||
        (metadata.keep_bindings?.includes(type) && !sent.some((binding) => binding.name === name)),
    );
    const id = randomUUID();
    const { main_module: mainModule, compatibility_date: compatibilityDate, annotations = {} } = metadata;
    versions.unshift({ id, annotations, bindings: [...sent, ...kept], modules, mainModule, compatibilityDate });
    await reload();
    return id;
  }

  router.put("/workers/scripts/:name", async (request) => {
    const id = await upload(request);
    cloudflare.serving = [{ version_id: id, percentage: 100 }];
    return ok({ deployment_id: id, startup_time_ms: 1 });
  });
  router.post("/workers/scripts/:name/versions", async (request) => {
    const resources = { script: { etag: "" } };
    return ok({ id: await upload(request), startup_time_ms: 1, metadata: { has_preview: false }, resources });
  });
  // Everything else is about a Worker that exists.
  router.all("/workers/:kind/:name/*?", () => (versions.length > 0 ? undefined : missing()));
  router.get("/workers/services/:name", () => {
    const script = { tag: null, tags: [], last_deployed_from: "wrangler" };
    return ok({ default_environment: { script } });
  });
  router.get("/workers/workers/:name", () => ok({ subdomain }));
  router.all("/workers/scripts/:name/subdomain", () => ok(subdomain));
  router.patch("/workers/scripts/:name/script-settings", () => ok({}));
  router.get("/workers/scripts/:name/settings", () => ok({ bindings: versions[0]?.bindings }));
  router.get("/workers/scripts/:name/secrets", () =>
    ok(versions[0]?.bindings.filter(({ type }) => type === "secret_text")),
  );
  const metadata = { created_on: new Date().toISOString(), source: "wrangler", author_email: "" };
  router.get("/workers/scripts/:name/versions/:id", ({ params }) => {
    const version = versions.find(({ id }) => id === params["id"]);
    const resources = { script: {}, script_runtime: {}, bindings: [] };
    return version ? ok({ ...version, metadata, resources }) : refuse(404, 10007, "No such version.");
  });
  const deployment = () => ({ ...metadata, id: randomUUID(), versions: cloudflare.serving });
  router.get("/workers/scripts/:name/deployments", () => ok({ deployments: [deployment()] }));
  router.post("/workers/scripts/:name/deployments", async (request) => {
    ({ versions: cloudflare.serving } = (await request.json()) as { versions: Share[] });
    return ok(deployment());
  });
  router.all("*", ({ method, url }) => {
    console.error(`The stand-in for Cloudflare's API does not know ${method} ${url}`);
    return refuse(404, 7003, "The stand-in does not know this.");
  });

  /** The answer of the version with the greatest share, or of the one that the version override header names. */
  async function serve(request: Request): Promise<Response> {
    const [, wanted] = /="(.+)"/.exec(request.headers.get("Cloudflare-Workers-Version-Overrides") ?? "") ?? [];
    const { serving } = cloudflare;
    const [first] = serving.toSorted((a, b) => b.percentage - a.percentage);
    const { version_id = "" } = serving.find(({ version_id }) => version_id === wanted) ?? first ?? {};
    const { method, url, headers } = request;
    const body = method === "POST" ? await request.text() : null;
    return use(async () => {
      const version = await runtime.getWorker(version_id);
      const answer = await version.fetch(url, { method, headers: Object.fromEntries(headers), body });
      return new Response(await answer.text(), { status: answer.status, headers: Object.fromEntries(answer.headers) });
    });
  }

  const server = createServer(async (incoming, outgoing) => {
    const url = new URL(incoming.url ?? "/", origin);
    const [, file] = /^\/files\/(.+)$/.exec(url.pathname) ?? [];
    const body = await buffer(incoming);
    if (file !== undefined) {
      files.set(file, body.toString());
      outgoing.writeHead(200, { ETag: `"${file}"` }).end();
      return;
    }
    const isApi = url.pathname.startsWith("/client/");
    if (isApi) requests.push(`${incoming.method} ${url.pathname.replace(/^.*\/accounts\/[^/]+/, "")}`);
    const answer: Response = await (isApi ? router.fetch : serve)(requestOf(incoming, url, body)).catch(
      (failure: unknown) => refuse(500, 1, String(failure)),
    );
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  const origin = `http://127.0.0.1:${address && typeof address !== "string" ? address.port : ""}`;

  const cloudflare: Cloudflare = {
    env: {
      CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: ACCOUNT,
    },
    base: `${origin}/v1`,
    databases,
    versions,
    serving: [],
    requests,
    flakyImports: 0,
    query: async (name, sql) => (await run(databases.get(name)?.uuid ?? "", sql)).at(-1)?.results ?? [],
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await runtime.dispose();
    },
  };
  return cloudflare;
}

function workerOf({ id, compatibilityDate, mainModule, modules, bindings }: Omit<Version, "annotations">) {
  const env = bindings.map((binding) => {
    if (binding.type === "d1") return [binding.name, { type: "d1" as const, id: binding.id }];
    if (binding.type === "secret_text") return [binding.name, { type: "text" as const, value: binding.text }];
    return [binding.name, { type: "json" as const, value: { id } }];
  });
  const sources = Object.entries(modules).map(([path, contents]) => [path, { type: "esm" as const, contents }]);
  const manifest = { mainModule, modules: Object.fromEntries(sources) };
  return { config: { name: id, compatibilityDate, manifest, env: Object.fromEntries(env) } };
}

function requestOf({ method = "GET", headers }: IncomingMessage, url: URL, body: Buffer): Request {
  const sent = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Request(url, { method, headers: sent, ...(method !== "GET" && { body }) });
}
