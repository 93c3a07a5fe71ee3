// The project's tables, for tests and measurements that have a SQLite of their own.

import { globSync, readFileSync } from "node:fs";

/** The SQL of all migrations, in their order. */
export const TABLES = globSync("migrations/*.sql")
  .sort()
  .map((file) => readFileSync(file, "utf8"))
  .join("\n");
