// Calls a handler hundreds of times for each HTTP request: a Worker's clock stands still while it computes, so the
// caller times the batch from outside. All handlers run here, in one isolate, on the SQLite of one Durable Object.

import { DurableObject } from "cloudflare:workers";
import service from "../../../src/index.ts";
import floor from "./floor.ts";

type Handler = (request: Request, env: Env) => Response | Promise<Response>;

const NOTHING = new Response();
const none = () => NOTHING;
// Cloudflare's is a cached counter. The local one would be a second Durable Object.
const RATE_LIMIT: RateLimit = { limit: async () => ({ success: true }) };
const HANDLERS: Record<string, Handler> = { service: service.fetch, floor: floor.fetch, none };

export class Store extends DurableObject<Env> {
  /** Executes the SQL of a PUT. Repeats any other request as its headers say, and returns the last response. */
  override async fetch(request: Request): Promise<Response> {
    const { method, url, headers } = request;
    const { storage } = this.ctx;
    const body = await request.text();
    if (method === "PUT") return Response.json(storage.sql.exec(body).toArray());

    const handle = HANDLERS[headers.get("Subject") ?? ""] ?? none;
    const env = { ...this.env, DB: databaseOn(storage.sql, headers.has("Worker-Only")), RATE_LIMIT };
    // HTTP libraries send a Content-Length.
    const entity = body && { "Content-Type": "application/json", "Content-Length": String(body.length) };
    const sent = { method, headers: { Authorization: `Bearer ${env.API_KEY}`, ...entity }, body: body || null };
    // Rolled back, so that every batch finds the same database, and no commit to a disk is timed.
    return storage.transaction(async (transaction) => {
      let response = NOTHING;
      for (let call = 0; call < Number(headers.get("Times")); call++) {
        response = await handle(new Request(url, sent), env);
        if (response.status >= 500) throw new Error(`${method} ${url} was answered ${response.status}`);
      }
      transaction.rollback();
      return new Response(`${response.status} ${await response.text()}`);
    });
  }
}

const BOOKMARK = `00000000-00000000-00000000-${"0".repeat(32)}`;

/**
 * The part of D1 that the service and the floor use. As in D1, the rows arrive as JSON. `isKept`: whether a statement
 * is executed only once, because its time is D1's and not the Worker's.
 */
function databaseOn(storage: SqlStorage, isKept: boolean): D1Database {
  const kept = new Map<string, string>();
  const answer = (sql: string, values: unknown[]) =>
    JSON.stringify({ results: storage.exec(sql, ...values).toArray(), meta: {} });
  const prepare = (sql: string, values: unknown[] = []) => ({
    bind: (...values: unknown[]) => prepare(sql, values),
    all: () => {
      const text = kept.get(sql) ?? answer(sql, values);
      if (isKept) kept.set(sql, text);
      return new Response(text).json();
    },
  });
  return { prepare, withSession: () => ({ prepare, getBookmark: () => BOOKMARK }) } as unknown as D1Database;
}

export default {
  fetch: (request: Request, { STORE }: { STORE: DurableObjectNamespace<Store> }) =>
    STORE.getByName("store").fetch(request),
};
