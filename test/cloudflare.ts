// The parts of Cloudflare's API that Wrangler uses for a Worker with a database, so that the real Wrangler can deploy
// to the account of account.ts. It runs SQL, and keeps what was uploaded without running it. An unknown request is
// answered with 404 and reported.

import { DatabaseSync } from "node:sqlite";
import { buffer } from "node:stream/consumers";
import { type IRequestStrict, Router } from "itty-router";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";
import { type Section, startAccount, versionId } from "./account.ts";
import { startServer } from "./server.ts";

const PATH = "/client/v4/accounts/account";
const BOOKMARK = "00000000-00000001-00000002-0123456789abcdef0123456789abcdef";

const ok = (result: unknown) => Response.json({ success: true, errors: [], messages: [], result });
const refuse = (status: number, code: number, message: string) =>
  Response.json({ success: false, errors: [{ code, message }], messages: [], result: null }, { status });

export async function startCloudflare() {
  const account = await startAccount();
  account.live.staging = undefined;
  const cloudflare = Object.assign(account, {
    /** The databases by name. The id of one is its name. */
    databases: {} as Record<string, DatabaseSync>,
    /** The Worker, the annotations and the modules of each upload. */
    uploads: [] as { section: Section; annotations?: Record<string, string>; modules: string }[],
    /** The requests to the API, such as `POST /d1/database`. */
    requests: [] as string[],
    /** How the next imports break: before they start, or after they stored everything. */
    importFaults: [] as ("before" | "after")[],
  });

  const router = Router<IRequestStrict>({ base: PATH });
  router.all("*", async ({ method, url }) => {
    const request = `${method} ${new URL(url).pathname.replace(PATH, "")}`;
    cloudflare.requests.push(request);
    await account.onMoment(request);
  });
  const sectionOf = (name = "") => name.replace("animal-store-", "") as Section;

  router.get("/d1/database", () => ok(Object.keys(cloudflare.databases).map((name) => ({ uuid: name, name }))));
  router.post("/d1/database", async (request) => {
    const { name } = (await request.json()) as { name: string };
    cloudflare.databases[name] = new DatabaseSync(":memory:");
    return ok({ uuid: name, name });
  });
  router.all("/d1/database/:id/*?", ({ params: { id = "" } }) =>
    cloudflare.databases[id] ? undefined : refuse(404, 7404, "The database does not exist."),
  );
  router.get("/d1/database/:id", ({ params: { id } }) => ok({ uuid: id, name: id }));
  const run = (database = "", sql: string, params: string[] = []) =>
    splitSqlQuery(sql).map((statement) => ({
      success: true,
      meta: {},
      results: cloudflare.databases[database]?.prepare(statement).all(...params),
    }));
  router.post("/d1/database/:id/query", async (request) => {
    const { sql, params } = (await request.json()) as { sql: string; params?: string[] };
    return ok(run(request.params["id"], sql, params));
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
    const results = run(request.params["id"], files.get(etag) ?? "");
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

  /** Keeps what was uploaded, and returns the response to it. */
  async function upload(request: IRequestStrict): Promise<{ section: Section; id: string; response: Response }> {
    const section = sectionOf(request.params["name"]);
    const form = await request.formData();
    const { annotations, bindings } = JSON.parse(String(form.get("metadata")));
    const modules = await Promise.all([...form.values()].map((part) => (typeof part === "string" ? "" : part.text())));
    cloudflare.uploads.push({ section, annotations, modules: modules.join("\n") });
    const [key] = bindings.filter(({ type }: { type: string }) => type === "secret_text");
    if (section === "staging-trial") account.trialKey = key.text;
    const id = versionId(++account.uploaded);
    const result = { id, deployment_id: id, startup_time_ms: 1, metadata: {}, resources: { script: {} } };
    return { section, id, response: ok(result) };
  }
  // The first upload makes a Worker, and puts the version live.
  router.put("/workers/scripts/:name", async (request) => {
    const { section, id, response } = await upload(request);
    account.live[section] = id;
    return response;
  });

  // Everything else is about a Worker that exists.
  router.all("/workers/:part/:name/*", ({ params }) =>
    account.live[sectionOf(params["name"])]
      ? undefined
      : refuse(404, 10007, "This Worker does not exist on your account."),
  );
  router.post("/workers/scripts/:name/versions", async (request) => (await upload(request)).response);
  router.get("/workers/scripts/:name/secrets", () =>
    ok(account.secrets.map((name) => ({ name, type: "secret_text" }))),
  );
  const metadata = { created_on: new Date().toISOString(), source: "wrangler", author_email: "" };
  router.get("/workers/scripts/:name/versions/:id", ({ params: { id } }) =>
    ok({ id, metadata, resources: { script: {}, script_runtime: {}, bindings: [] } }),
  );
  router.get("/workers/scripts/:name/deployments", ({ params }) =>
    ok({ deployments: [{ ...metadata, id: "deployment", versions: account.versions(sectionOf(params["name"])) }] }),
  );
  router.post("/workers/scripts/:name/deployments", async (request) => {
    const { versions } = (await request.json()) as { versions: { version_id: string }[] };
    account.live[sectionOf(request.params["name"])] = versions.map(({ version_id }) => version_id).join(" ");
    return ok({ id: "deployment" });
  });
  // What Wrangler reads of a Worker at various paths.
  const subdomain = { enabled: true, previews_enabled: false };
  const worker = { ...subdomain, subdomain, default_environment: { script: { tag: null, tags: [] } }, bindings: [] };
  for (const path of ["services/:name", "workers/:name", "scripts/:name/:part"]) {
    router.all(`/workers/${path}`, () => ok(worker));
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
    /** The environment variables with which Wrangler uses this account, and its Workers' addresses lead to it. */
    env: {
      CLOUDFLARE_API_BASE_URL: `${origin}/client/v4`,
      CLOUDFLARE_API_TOKEN: "token",
      CLOUDFLARE_ACCOUNT_ID: "account",
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(leadTo(account))}`,
    },
    [Symbol.asyncDispose]: async () => {
      close();
      await end();
    },
  });
}

/** A module that replaces fetch, so that it finds the Workers of the account. */
const leadTo = ({ base, trialBase }: { base: string; trialBase: string }) => `
const real = fetch;
globalThis.fetch = (input, init) => {
  const address = String(input)
    .replace("https://animal-store-staging.operator.workers.dev/v1", ${JSON.stringify(base)})
    .replace("https://animal-store-staging-trial.operator.workers.dev/v1", ${JSON.stringify(trialBase)});
  return real(address === String(input) ? input : address, init);
};`;
