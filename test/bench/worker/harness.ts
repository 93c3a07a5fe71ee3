// Calls a service as often as a request says, and returns the last response: a Worker's clock stands still while it
// computes, so the caller times the batch from outside. All services run here, in one isolate, each on the SQLite of a
// Durable Object, where the SQL of a PUT is executed.

import { DurableObject } from "cloudflare:workers";

type Service = { fetch(request: Request, env: Env): Promise<Response> };

// Cloudflare's is a cached counter. The local one would be a second Durable Object.
const RATE_LIMIT: RateLimit = { limit: async () => ({ success: true }) };

export class Store extends DurableObject<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { method, url, headers } = request;
    const { storage } = this.ctx;
    const body = await request.text();
    if (method === "PUT") return Response.json(storage.sql.exec(body).toArray());

    // In a variable, so that it is not bundled.
    const path = `./${headers.get("Service")}.js`;
    const { default: service }: { default: Service } = await import(path);
    const env = { ...this.env, DB: databaseOn(storage.sql, headers.get("Replayed") !== ""), RATE_LIMIT };
    // HTTP libraries send a Content-Length.
    const entity = body && { "Content-Type": "application/json", "Content-Length": String(body.length) };
    const sent = { method, headers: { Authorization: `Bearer ${env.API_KEY}`, ...entity }, body: body || null };
    // Rolled back, so that every batch finds the same database, and no commit to a disk is timed.
    return storage.transaction(async (transaction) => {
      let response = new Response();
      for (let call = 0; call < Number(headers.get("Times")); call++) {
        response = await service.fetch(new Request(url, sent), env);
        if (response.status >= 500) throw new Error(await response.text());
      }
      transaction.rollback();
      return new Response(`${response.status} ${await response.text()}`);
    });
  }
}

/**
 * The part of D1 that the service uses, with rows that arrive as JSON. `isReplayed`: whether a statement is executed
 * only once, because its time is D1's.
 */
function databaseOn(storage: SqlStorage, isReplayed: boolean): D1Database {
  const replayed = new Map<string, string>();
  const prepare = (sql: string, values: unknown[] = []) => ({
    bind: (...values: unknown[]) => prepare(sql, values),
    all: () => {
      const text = replayed.get(sql) ?? JSON.stringify({ results: storage.exec(sql, ...values).toArray(), meta: {} });
      if (isReplayed) replayed.set(sql, text);
      return new Response(text).json();
    },
  });
  return { prepare, withSession: () => ({ prepare, getBookmark: () => "bookmark" }) } as unknown as D1Database;
}

export default {
  fetch: (request: Request, { STORE }: { STORE: DurableObjectNamespace<Store> }) =>
    STORE.getByName(request.headers.get("Service") ?? "").fetch(request),
};
