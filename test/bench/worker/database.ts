// D1 over a Durable Object's own SQLite. The client is D1's own, because in production too every query goes through it, at
// a cost of its own; only what is beyond it is replaced: the network or the simulator, which would hide the Worker's time.

// What the client carries as a response header, from D1 to getBookmark().
const BOOKMARK = { "x-cf-d1-session-commit-token": `00000000-00000000-00000000-${"0".repeat(32)}` };

interface Query {
  sql: string;
  params: SqlStorageValue[];
}

export class Database {
  /** As D1 counts and bills them. */
  readonly rows = { read: 0, written: 0 };
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** A client of this database; `client` is one of another, and only tells which class that is. */
  clientLike(client: D1Database): D1Database {
    const Client = client.constructor as new (server: object) => D1Database;
    return new Client({ fetch: async (_url: string, { body }: { body: string }) => this.#answer(JSON.parse(body)) });
  }

  #answer({ sql, params }: Query): Response {
    const cursor = this.#sql.exec(sql, ...params);
    const results = cursor.toArray();
    this.rows.read += cursor.rowsRead;
    this.rows.written += cursor.rowsWritten;
    const meta = { rows_read: cursor.rowsRead, rows_written: cursor.rowsWritten };
    return Response.json({ results, meta }, { headers: BOOKMARK });
  }
}
