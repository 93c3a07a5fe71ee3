// Calls a handler hundreds of times for each HTTP request: a Worker's clock stands still while it computes, so the caller times
// the batch from outside. All handlers run here, in one isolate, on the SQLite of one Durable Object. Queries go through D1's own
// client, as in production; only the network or simulator behind it is replaced, which would hide the Worker's time.

import { DurableObject } from "cloudflare:workers";
import service from "../../../src/index.ts";
import { type Command, OPERATIONS, type Subject } from "../operations.ts";
import floor from "./floor.ts";

type Handler = (request: Request, env: Env) => Response | Promise<Response>;

const NOTHING = new Response();
const HANDLERS: Record<Subject, Handler> = { service: service.fetch, floor: floor.fetch, none: () => NOTHING };

export class Store extends DurableObject<Env> {
  override async fetch(message: Request): Promise<Response> {
    const { storage } = this.ctx;
    const command = await message.json<Command>();
    if ("sql" in command) {
      storage.sql.exec(command.sql);
      return new Response();
    }
    const { subject, operation, calls } = command;
    const env = { ...this.env, DB: clientLike(this.env.DB, storage.sql) };
    // Rolled back, so that every batch finds the same database, and no commit to a disk is timed.
    return storage.transaction(async (transaction) => {
      let response = NOTHING;
      for (let call = 0; call < calls; call++) {
        response = await HANDLERS[subject](requestOf(operation, call, env.API_KEY), env);
        if (!response.ok) throw new Error(`${subject} answered ${operation} with ${response.status}`);
      }
      transaction.rollback();
      return new Response(`${response.status} ${await response.text()}`);
    });
  }
}

function requestOf(operation: string, call: number, key: string): Request {
  const [method = "GET", path = "/", body] = OPERATIONS[operation]?.request(call) ?? [];
  const text = body && JSON.stringify(body);
  // HTTP libraries send a Content-Length.
  const entity = text && { "Content-Type": "application/json", "Content-Length": String(text.length) };
  const headers = { Authorization: `Bearer ${key}`, ...entity };
  return new Request(`https://store.example${path}`, { method, headers, body: text ?? null });
}

// The response header from which the client takes the bookmark.
const BOOKMARK = { "x-cf-d1-session-commit-token": `00000000-00000000-00000000-${"0".repeat(32)}` };

interface Query {
  sql: string;
  params: SqlStorageValue[];
}

/** A D1 client for this database, of the same class as `client`. */
function clientLike(client: D1Database, database: SqlStorage): D1Database {
  const Client = client.constructor as new (server: object) => D1Database;
  const answer = ({ sql, params }: Query) => {
    const results = database.exec(sql, ...params).toArray();
    return Response.json({ results, meta: {} }, { headers: BOOKMARK });
  };
  return new Client({ fetch: async (_url: string, { body }: { body: string }) => answer(JSON.parse(body)) });
}

interface BenchEnv extends Env {
  STORE: DurableObjectNamespace<Store>;
}

export default {
  fetch: (request, { STORE }) => STORE.getByName("store").fetch(request),
} satisfies ExportedHandler<BenchEnv>;
