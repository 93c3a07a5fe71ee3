// A stand-in for the parts of Cloudflare's API that Wrangler uses to deploy a Worker with D1 and assets: it stores what is
// uploaded, and edge.ts serves it. An unknown request is answered with 404 and reported.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { type IRequestStrict, Router } from "itty-router";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";
import { type Binding, Edge, type Share } from "./edge.ts";

const ACCOUNT = "account";
const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";
const IMPORT_BYTES = 10_000_000;

export interface Cloudflare extends AsyncDisposable {
  /** The environment variables with which Wrangler uses this account. */
  env: NodeJS.Dict<string>;
  edge: Edge;
  /** Cloudflare's code for a Worker that does not exist: 10007 or 10090, depending on the endpoint. */
  missingWorkerCode: number;
  /** Every database of the account, by name. */
  databases: Map<string, Database>;
  /** Every Worker of the account, by name. */
  workers: Map<string, Worker>;
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

interface Worker {
  /** The newest first. */
  versions: { id: string; annotations: Record<string, string>; bindings: Binding[]; modules: Record<string, string> }[];
  /** The newest first. */
  deployments: { id: string; versions: Share[] }[];
}

interface Metadata {
  main_module: string;
  compatibility_date: string;
  bindings: (Binding | { type: "inherit"; name: string })[];
  keep_bindings?: string[];
  annotations?: Record<string, string>;
  assets: { config: { run_worker_first: string[]; _headers: string } };
}

type Manifest = Record<string, { hash: string }>;

const ok = (result: unknown) => Response.json({ success: true, errors: [], messages: [], result });
const refuse = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

export async function startCloudflare(): Promise<Cloudflare> {
  const edge = new Edge();
  const databases = new Map<string, Database>();
  const workers = new Map<string, Worker>();
  const manifests = new Map<string, Manifest>();
  const assets = new Map<string, Buffer>();
  const files = new Map<string, string>();
  const requests: string[] = [];

  const databaseOf = (key: string | undefined) =>
    [...databases.values()].find(({ uuid, name }) => key === uuid || key === name);
  const run = (uuid: string, sql: string, params: unknown[] = []) =>
    edge.query(
      uuid,
      splitSqlQuery(sql).map((statement) => ({ sql: statement, params })),
    );

  const missingWorker = () => refuse(404, cloudflare.missingWorkerCode, "This Worker does not exist on your account.");

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
    await edge.addDatabase(database.uuid);
    return ok(database);
  });
  router.get("/d1/database/:id", ({ params }) => {
    const database = databaseOf(params["id"]);
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

  router.get("/workers/services/:name", ({ params }) => {
    const script = { tag: null, tags: [], last_deployed_from: "wrangler" };
    return workers.has(params["name"] ?? "") ? ok({ default_environment: { script } }) : missingWorker();
  });
  router.get("/workers/subdomain", () => ok({ subdomain: "operator" }));
  const subdomain = { enabled: true, previews_enabled: false };
  router.get("/workers/workers/:name", ({ params }) =>
    workers.has(params["name"] ?? "") ? ok({ subdomain }) : missingWorker(),
  );
  router.all("/workers/scripts/:name/subdomain", () => ok(subdomain));
  router.patch("/workers/scripts/:name/script-settings", () => ok({}));

  router.post("/workers/scripts/:name/assets-upload-session", async (request) => {
    const { manifest } = (await request.json()) as { manifest: Manifest };
    manifests.set(request.params["name"] ?? "", manifest);
    const wanted = Object.values(manifest).filter(({ hash }) => !assets.has(hash));
    return ok({ jwt: "jwt", buckets: wanted.map(({ hash }) => [hash]) });
  });
  router.post("/workers/assets/upload", async (request) => {
    for (const [hash, part] of await request.formData()) {
      assets.set(hash, Buffer.from(typeof part === "string" ? part : await part.text(), "base64"));
    }
    return ok({ jwt: "jwt" });
  });

  /** Adds a version to a Worker. The first one creates the Worker. */
  async function upload(request: IRequestStrict): Promise<string> {
    const name = request.params["name"] ?? "";
    const worker = workers.get(name) ?? { versions: [], deployments: [] };
    workers.set(name, worker);
    const form = await request.formData();
    const metadata = JSON.parse(String(form.get("metadata"))) as Metadata;
    const modules: Record<string, string> = {};
    for (const [path, part] of form) {
      if (typeof part !== "string" && !path.endsWith(".map")) modules[path] = await part.text();
    }
    const before = worker.versions[0]?.bindings ?? [];
    const sent = metadata.bindings.filter((binding) => binding.type !== "inherit");
    const inherited = metadata.bindings.filter(({ type }) => type === "inherit").map((binding) => binding.name);
    const kept = before.filter(
      ({ type, name }) =>
        inherited.includes(name) ||
        (metadata.keep_bindings?.includes(type) && !sent.some((binding) => binding.name === name)),
    );
    const bindings = [...sent, ...kept];
    const { run_worker_first, _headers } = metadata.assets.config;
    const uploaded = Object.entries(manifests.get(name) ?? {}).map(([path, { hash }]) => [path, assets.get(hash)]);
    const id = randomUUID();
    await edge.addVersion({
      id,
      compatibilityDate: metadata.compatibility_date,
      mainModule: metadata.main_module,
      modules,
      bindings,
      assets: {
        files: { ...Object.fromEntries(uploaded), _headers: Buffer.from(_headers) },
        runWorkerFirst: run_worker_first,
      },
    });
    worker.versions.unshift({ id, annotations: metadata.annotations ?? {}, bindings, modules });
    return id;
  }

  async function deploy(name: string, versions: Share[]) {
    const deployment = {
      id: randomUUID(),
      created_on: new Date().toISOString(),
      source: "api",
      author_email: "",
      versions,
    };
    workers.get(name)?.deployments.unshift(deployment);
    await edge.deploy(name, versions);
    return deployment;
  }

  router.put("/workers/scripts/:name", async (request) => {
    const id = await upload(request);
    await deploy(request.params["name"] ?? "", [{ version_id: id, percentage: 100 }]);
    return ok({ deployment_id: id, startup_time_ms: 1 });
  });
  router.post("/workers/scripts/:name/versions", async (request) =>
    ok({
      id: await upload(request),
      startup_time_ms: 1,
      metadata: { has_preview: false },
      resources: { script: { etag: "" } },
    }),
  );
  router.all("/workers/scripts/:name/*", ({ params }) =>
    workers.has(params["name"] ?? "") ? undefined : missingWorker(),
  );
  router.get("/workers/scripts/:name/settings", ({ params }) =>
    ok({ bindings: workers.get(params["name"] ?? "")?.versions[0]?.bindings }),
  );
  router.get("/workers/scripts/:name/secrets", ({ params }) =>
    ok(workers.get(params["name"] ?? "")?.versions[0]?.bindings.filter(({ type }) => type === "secret_text")),
  );
  router.get("/workers/scripts/:name/versions/:id", ({ params }) => {
    const version = workers.get(params["name"] ?? "")?.versions.find(({ id }) => id === params["id"]);
    const metadata = { created_on: new Date().toISOString(), source: "wrangler", author_email: "" };
    return version
      ? ok({ ...version, metadata, resources: { script: {}, script_runtime: {}, bindings: [] } })
      : refuse(404, 10007, "No such version.");
  });
  router.get("/workers/scripts/:name/deployments", ({ params }) =>
    ok({ deployments: workers.get(params["name"] ?? "")?.deployments }),
  );
  router.post("/workers/scripts/:name/deployments", async (request) => {
    const { versions } = (await request.json()) as { versions: Share[] };
    return ok(await deploy(request.params["name"] ?? "", versions));
  });

  // Asked by Wrangler only if no account is chosen. Two of them cannot be told apart without asking a person.
  const accounts = [ACCOUNT, "a second account"].map((id) => ({ id, name: id }));
  const account = Router<IRequestStrict>({ base: "/client/v4" })
    .get("/accounts", () => ok(accounts))
    .get("/memberships", () => ok(accounts.map((account) => ({ id: account.id, account }))))
    .all("*", router.fetch)
    .all("*", ({ method, url }) => {
      console.error(`The stand-in for Cloudflare's API does not know ${method} ${url}`);
      return refuse(404, 7003, "The stand-in does not know this.");
    });

  const server = createServer(async (incoming, outgoing) => {
    const url = new URL(incoming.url ?? "/", origin);
    const [, file] = /^\/files\/(.+)$/.exec(url.pathname) ?? [];
    const body = await buffer(incoming);
    if (file !== undefined) {
      files.set(file, body.toString());
      outgoing.writeHead(200, { ETag: `"${file}"` }).end();
      return;
    }
    const asked = `${incoming.method} ${url.pathname.replace(/^.*\/accounts\/[^/]+/, "")}`;
    requests.push(asked);
    const answer: Response = await account
      .fetch(requestOf(incoming, url, body))
      .catch((failure) => refuse(500, 1, String(failure)));
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  const origin = `http://127.0.0.1:${address && typeof address !== "string" ? address.port : ""}`;

  const cloudflare: Cloudflare = {
    flakyImports: 0,
    missingWorkerCode: 10007,
    env: {
      CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: ACCOUNT,
    },
    edge,
    databases,
    workers,
    requests,
    query: async (name, sql) => (await run(databaseOf(name)?.uuid ?? "", sql)).at(-1)?.results ?? [],
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await edge[Symbol.asyncDispose]();
    },
  };
  return cloudflare;
}

function requestOf({ method = "GET", headers }: IncomingMessage, url: URL, body: Buffer): Request {
  const type = headers["content-type"];
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(url, { method, ...(type && { headers: { "Content-Type": type } }), ...(hasBody && { body }) });
}
