// The database binding with an interceptor, which observes its queries or makes them fail.

type Intercept = <T>(execute: () => Promise<T>, sql: string) => Promise<T>;
type Method = (...args: unknown[]) => Promise<unknown>;

const EXECUTING = ["all", "first", "raw", "run"];

/** `db`, whose sessions run every round trip through `intercept`. */
export function intercepted(db: D1Database, intercept: Intercept): D1Database {
  const statement = (target: D1PreparedStatement, sql: string): D1PreparedStatement =>
    withMethods(target, (name, method) => {
      if (name === "bind") return (...values: unknown[]) => statement(target.bind(...values), sql);
      return EXECUTING.includes(name) ? (...args: unknown[]) => intercept(() => method(...args), sql) : method;
    });
  const session = (target: D1DatabaseSession): D1DatabaseSession =>
    withMethods(target, (name, method) =>
      name === "prepare" ? (sql: string) => statement(target.prepare(sql), sql) : method,
    );
  return withMethods(db, (name, method) =>
    name === "withSession" ? (start: string) => session(db.withSession(start)) : method,
  );
}

function withMethods<T extends object>(target: T, replace: (name: string, method: Method) => unknown): T {
  return new Proxy(target, {
    get(_, name) {
      const method = Reflect.get(target, name) as Method;
      return replace(String(name), method.bind(target));
    },
  });
}

/** `db`, and the statement and the cost of each of its round trips. */
export function recorded(db: D1Database) {
  const trips: (D1Meta & { sql: string })[] = [];
  const DB = intercepted(db, async (execute, sql) => {
    const result = await execute();
    trips.push({ ...(result as D1Result).meta, sql });
    return result;
  });
  return { DB, trips };
}

/** `db`, which fails every round trip with `failure`. */
export function failing(db: D1Database, failure: unknown): D1Database {
  return intercepted(db, () => Promise.reject(failure));
}
