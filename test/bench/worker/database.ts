// D1 over a Durable Object's own SQLite. The client is D1's own, because in production too every query goes through it, at
// a cost of its own; only what is beyond it is replaced: the network or the simulator, which would hide the Worker's time.

// What the client carries as a response header, from D1 to getBookmark().
const BOOKMARK = { "x-cf-d1-session-commit-token": `00000000-00000000-00000000-${"0".repeat(32)}` };

interface Query {
  sql: string;
  params: SqlStorageValue[];
}

/** A client of this database; `client` is one of another, and only tells which class that is. */
export function clientLike(client: D1Database, database: SqlStorage): D1Database {
  const Client = client.constructor as new (server: object) => D1Database;
  const answer = ({ sql, params }: Query) => {
    const results = database.exec(sql, ...params).toArray();
    return Response.json({ results, meta: {} }, { headers: BOOKMARK });
  };
  return new Client({ fetch: async (_url: string, { body }: { body: string }) => answer(JSON.parse(body)) });
}
