// Calls a handler as often as a request says, and returns the last response: a Worker's clock stands still while it
// computes, so the caller times the batch from outside. All handlers run here, in one isolate, on the SQLite of one
// Durable Object, where the SQL of a PUT is executed.

import { DurableObject } from "cloudflare:workers";
import service from "../../../src/index.ts";
import floor from "./floor.ts";

type Handler = (request: Request, env: Env) => Response | Promise<Response>;

const NOTHING = new Response();
// Cloudflare's is a cached counter. The local one would be a second Durable Object.
const RATE_LIMIT: RateLimit = { limit: async () => ({ success: true }) };
const HANDLERS: Record<string, Handler> = { none: () => NOTHING, floor: floor.fetch };

export class Store extends DurableObject<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { method, url, headers } = request;
    const { storage } = this.ctx;
    const body = await request.text();
    if (method === "PUT") return Response.json(storage.sql.exec(body).toArray());

    const subject = headers.get("Subject") ?? "";
    const handle = HANDLERS[subject] ?? service.fetch;
    const env = { ...this.env, DB: databaseOn(storage.sql, subject === "service alone"), RATE_LIMIT };
    // HTTP libraries send a Content-Length.
    const entity = body && { "Content-Type": "application/json", "Content-Length": String(body.length) };
    const sent = { method, headers: { Authorization: `Bearer ${env.API_KEY}`, ...entity }, body: body || null };
    // Rolled back, so that every batch finds the same database, and no commit to a disk is timed.
    return storage.transaction(async (transaction) => {
      let response = NOTHING;
      for (let call = 0; call < Number(headers.get("Times")); call++) {
        response = await handle(new Request(url, sent), env);
        if (response.status >= 500) throw new Error(await response.text());
      }
      transaction.rollback();
      return new Response(`${response.status} ${await response.text()}`);
    });
  }
}

/**
 * The part of D1 that the service and the floor use, with rows that arrive as JSON. `isKept`: whether a statement is
 * executed only once, because its time is D1's.
 */
function databaseOn(storage: SqlStorage, isKept: boolean): D1Database {
  const kept = new Map<string, string>();
  const prepare = (sql: string, values: unknown[] = []) => ({
    bind: (...values: unknown[]) => prepare(sql, values),
    all: () => {
      const text = kept.get(sql) ?? JSON.stringify({ results: storage.exec(sql, ...values).toArray(), meta: {} });
      if (isKept) kept.set(sql, text);
      return new Response(text).json();
    },
  });
  return { prepare, withSession: () => ({ prepare, getBookmark: () => "bookmark" }) } as unknown as D1Database;
}

export default {
  fetch: (request: Request, { STORE }: { STORE: DurableObjectNamespace<Store> }) =>
    STORE.getByName("store").fetch(request),
};
