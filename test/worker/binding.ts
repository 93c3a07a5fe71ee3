// The database binding with something in its way: to watch what crosses it, or to make it fail.

export type Crossing = { sql: string; parameters: unknown[] };
type Way = <T>(crossing: Crossing, cross: () => Promise<T>) => Promise<T>;
type Method = (...args: unknown[]) => Promise<unknown>;

const CROSSINGS = ["all", "first", "raw", "run"];

/** `db`, with every round trip of its prepared statements going through `way`. */
export function intercepted(db: D1Database, way: Way): D1Database {
  const statement = (target: D1PreparedStatement, crossing: Crossing): D1PreparedStatement =>
    withMethods(target, (name, method) => {
      if (name === "bind") {
        return (...values: unknown[]) => statement(target.bind(...values), { ...crossing, parameters: values });
      }
      return CROSSINGS.includes(name) ? (...args: unknown[]) => way(crossing, () => method(...args)) : method;
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

/** `db`, failing every round trip with `failure`. */
export function failing(db: D1Database, failure: unknown): D1Database {
  return intercepted(db, () => Promise.reject(failure));
}
