// The database binding with an interceptor, which observes its queries or makes them fail.

import { env } from "cloudflare:workers";

type Intercept = <T>(execute: () => Promise<T>, sql: string) => Promise<T>;

/** The database, as far as the service uses it. Its sessions run every round trip through `intercept`. */
export function intercepted(intercept: Intercept): D1Database {
  const intercepting = (statement: D1PreparedStatement, sql: string) => ({
    bind: (...values: unknown[]) => intercepting(statement.bind(...values), sql),
    all: () => intercept(() => statement.all(), sql),
  });
  const withSession = (start: string) => {
    const session = env.DB.withSession(start);
    const prepare = (sql: string) => intercepting(session.prepare(sql), sql);
    return { prepare, getBookmark: () => session.getBookmark() };
  };
  return { withSession } as unknown as D1Database;
}

/** The database, and the statement and the cost of each of its round trips. */
export function recorded() {
  const trips: (D1Meta & { sql: string })[] = [];
  const DB = intercepted(async (execute, sql) => {
    const result = await execute();
    trips.push({ ...(result as D1Result).meta, sql });
    return result;
  });
  return { DB, trips };
}

/** The database, which fails every round trip with `failure`. */
export const failing = (failure: unknown): D1Database => intercepted(() => Promise.reject(failure));
