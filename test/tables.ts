// The project's tables, for tests and measurements that have a SQLite of their own.

import { globSync, readFileSync } from "node:fs";

/** The SQL of all migrations of a checkout, in their order. */
export const tablesOf = (folder: string): string =>
  globSync(`${folder}/migrations/*.sql`)
    .sort()
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");

export const TABLES = tablesOf(".");
