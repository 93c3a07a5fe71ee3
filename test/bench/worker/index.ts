// Calls a handler some hundred times for one HTTP request, because a Worker's clock stands still while it computes: the
// caller times the batch from outside. Both handlers run here, in one isolate, on the same Durable Object's SQLite.

import { DurableObject } from "cloudflare:workers";
import service from "../../../src/index.ts";
import { type Batch, type Call, type Command, type Filling, RARE, type Rows, type Subject } from "../batch.ts";
import { Database } from "./database.ts";
import floor from "./floor.ts";
import { requestOf } from "./requests.ts";

type Handler = (request: Request, env: Env) => Response | Promise<Response>;

const NOTHING = new Response();
const HANDLERS: Record<Subject, Handler> = { service: service.fetch, floor: floor.fetch, none: () => NOTHING };

const CHUNK = 50_000; // rows
const FILL = `
  WITH RECURSIVE animal (id) AS (SELECT ?1 UNION ALL SELECT id + 1 FROM animal WHERE id < ?2)
  INSERT INTO pets (id, name, category_id, status)
  SELECT id, 'Animal ' || id, id % 90, iif(id % ?3 = 0, '${RARE.status}', iif(id % 2, 'available', 'pending'))
  FROM animal`;

/** One database of animals, of one size. */
export class Store extends DurableObject<Env> {
  fill({ size, schema }: Filling): void {
    const { sql } = this.ctx.storage;
    sql.exec(schema);
    for (let first = 1; first <= size; first += CHUNK) {
      sql.exec(FILL, first, Math.min(first + CHUNK - 1, size), size / RARE.animals);
    }
  }

  /** The body of one answer, to be compared. */
  async answer({ subject, operation, size }: Call): Promise<string> {
    return this.undone(async (env) => {
      const response = await HANDLERS[subject](requestOf(operation, size, 1, env.API_KEY), env);
      return response.text();
    });
  }

  async run({ subject, operation, size, calls }: Batch): Promise<Rows> {
    const handler = HANDLERS[subject];
    return this.undone(async (env, { rows }) => {
      for (let call = 0; call < calls; call++) {
        const { ok, status } = await handler(requestOf(operation, size, call, env.API_KEY), env);
        if (!ok) throw new Error(`${subject} answered ${operation} with ${status}`);
      }
      return { read: rows.read / calls, written: rows.written / calls };
    });
  }

  /** Rolled back, so that no batch leaves the next one another database, and no commit to a disk is timed. */
  private undone<T>(work: (env: Env, database: Database) => Promise<T>): Promise<T> {
    const database = new Database(this.ctx.storage.sql);
    return this.ctx.storage.transaction(async (transaction) => {
      const result = await work({ ...this.env, DB: database.clientLike(this.env.DB) }, database);
      transaction.rollback();
      return result;
    });
  }
}

interface BenchEnv extends Env {
  STORES: DurableObjectNamespace<Store>;
}

async function fetch(request: Request, { STORES }: BenchEnv): Promise<Response> {
  const command = await request.json<Command>();
  const store = STORES.getByName(String(command.size));
  switch (command.do) {
    case "fill":
      await store.fill(command);
      return new Response(null, { status: 204 });
    case "answer":
      return new Response(await store.answer(command));
    case "run":
      return Response.json(await store.run(command));
  }
}

export default { fetch } satisfies ExportedHandler<BenchEnv>;
