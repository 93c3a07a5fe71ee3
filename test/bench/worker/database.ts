// D1's interface over a Durable Object's own SQLite: the same engine in the same process, without the call to another
// that is most of a query's time and would hide the Worker's own. Only what a handler here may use.

export class Database {
  readonly rows = { read: 0, written: 0 };
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** As a handler's binding. */
  asD1(): D1Database {
    return this as unknown as D1Database;
  }

  prepare(query: string): Statement {
    return new Statement(this, query, []);
  }

  withSession(): this {
    return this;
  }

  getBookmark(): string {
    return `00000000-00000000-00000000-${"0".repeat(32)}`;
  }

  async batch(statements: Statement[]): Promise<Result[]> {
    return statements.map(({ query, values }) => this.execute(query, values));
  }

  execute(query: string, values: SqlStorageValue[]): Result {
    const cursor = this.#sql.exec(query, ...values);
    const results = cursor.toArray();
    this.rows.read += cursor.rowsRead;
    this.rows.written += cursor.rowsWritten;
    return { success: true, results, meta: { rows_read: cursor.rowsRead, rows_written: cursor.rowsWritten } };
  }
}

interface Result {
  success: true;
  results: Record<string, SqlStorageValue>[];
  meta: { rows_read: number; rows_written: number };
}

class Statement {
  readonly #database: Database;
  readonly query: string;
  readonly values: SqlStorageValue[];

  constructor(database: Database, query: string, values: SqlStorageValue[]) {
    this.#database = database;
    this.query = query;
    this.values = values;
  }

  bind(...values: SqlStorageValue[]): Statement {
    return new Statement(this.#database, this.query, values);
  }

  async run(): Promise<Result> {
    return this.#database.execute(this.query, this.values);
  }

  all(): Promise<Result> {
    return this.run();
  }

  async first(column?: string): Promise<unknown> {
    const [row] = (await this.run()).results;
    return (column === undefined ? row : row?.[column]) ?? null;
  }
}
