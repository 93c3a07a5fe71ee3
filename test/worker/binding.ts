// The database binding with an interceptor, which observes its queries or makes them fail.

export type Query = { sql: string; parameters: unknown[] };
type Intercept = <T>(query: Query, execute: () => Promise<T>) => Promise<T>;
type Method = (...args: unknown[]) => Promise<unknown>;

const EXECUTING = ["all", "first", "raw", "run"];

/** `db`, whose prepared statements run every round trip through `intercept`. */
export function intercepted(db: D1Database, intercept: Intercept): D1Database {
  const statement = (target: D1PreparedStatement, query: Query): D1PreparedStatement =>
    withMethods(target, (name, method) => {
      if (name === "bind") {
        return (...values: unknown[]) => statement(target.bind(...values), { ...query, parameters: values });
      }
      return EXECUTING.includes(name) ? (...args: unknown[]) => intercept(query, () => method(...args)) : method;
    });
  const preparing = <T extends D1Database | D1DatabaseSession>(target: T): T =>
    withMethods(target, (name, method) =>
      name === "prepare" ? (sql: string) => statement(target.prepare(sql), { sql, parameters: [] }) : method,
    );
  return withMethods(preparing(db), (name, method) =>
    name === "withSession" ? (start: string) => preparing(db.withSession(start)) : method,
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

/** `db`, which fails every round trip with `failure`. */
export function failing(db: D1Database, failure: unknown): D1Database {
  return intercepted(db, () => Promise.reject(failure));
}
