// How the properties of a resource are stored in the columns of its table. D1 returns integers as JavaScript numbers, rounded
// beyond 2^53, so SQLite itself builds the JSON of a row. For the same reason an int64 is bound as a decimal string, which an
// INTEGER column stores exactly.

import { INT64 } from "../values/int64.ts";

/** The column of each property. The column of an optional property is null if the property is absent. */
export type Columns<Resource> = {
  [Property in keyof Resource]-?: undefined extends Resource[Property] ? OptionalColumn : string;
};

interface OptionalColumn {
  optional: string;
}

export type AnyColumns = Record<string, string | OptionalColumn>;

export const nameOf = (column: string | OptionalColumn): string =>
  typeof column === "string" ? column : column.optional;

/** SQL that builds the JSON of a row: the properties in the order of `columns`, optional ones last. */
export function jsonOf(columns: AnyColumns): string {
  const membersOf = (kind: "string" | "object") =>
    Object.entries(columns)
      .filter(([, column]) => typeof column === kind)
      .map(([property, column]) => `'${property}', ${nameOf(column)}`)
      .join(", ");
  const optional = membersOf("object");
  const required = `json_object(${membersOf("string")})`;
  // A merge patch leaves out members that are null (RFC 7396).
  return optional ? `json_patch(${required}, json_object(${optional}))` : required;
}

/** A row as the statements of this service select it. */
export interface JsonRow {
  json: string;
}

/** The JSON of a row. Throws if D1 returned a row without it. */
export function jsonIn(row: Partial<JsonRow> | undefined): string {
  const json: unknown = row?.json;
  if (typeof json !== "string" || !json.startsWith('{"id":')) throw new Error("D1 returned a row without its JSON.");
  return json;
}

/** The id in the JSON of a row, which starts with it. Throws if D1 returned a row without an id. */
export function idIn(json: string): string {
  const [, id] = /^\{"id":(-?\d+)[,}]/.exec(json) ?? [];
  if (id === undefined) throw new Error("D1 returned a row without an id.");
  return id;
}

/** The smallest id that a page can contain if it starts after the id `after`, or if it is the first. */
export const firstId = (after: bigint | undefined): string => String(after === undefined ? INT64.minimum : after + 1n);

/**
 * SQL that stores a row, at most one for each idempotency key, with the parameters of `valuesOf`. It returns the JSON of the
 * stored row and, as `matches`, whether its columns equal the parameters: a key that already has a row keeps that row. The
 * table needs a column `idempotency_key` with a unique index that excludes nulls.
 */
export function insertSql(table: string, columns: AnyColumns & { id: string }): string {
  const { id: _, ...others } = columns;
  const names = Object.values(others).map(nameOf);
  const parameters = names.map((_, index) => `?${index + 1}`);
  // On conflict, an update that changes nothing: DO NOTHING would return no row.
  return `INSERT INTO ${table} (${names.join(", ")}, idempotency_key) VALUES (${parameters.join(", ")}, ?${names.length + 1})
    ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO UPDATE SET ${names[0]} = ${names[0]}
    RETURNING ${jsonOf(columns)} AS json, ${names.map((name, index) => `${name} IS ?${index + 1}`).join(" AND ")} AS matches`;
}

/** The parameters of `insertSql`. */
export function valuesOf<New extends object>(
  columns: Columns<New & { id: bigint }>,
  resource: New,
  idempotencyKey: string | undefined,
): unknown[] {
  const properties = Object.keys(columns).filter((property) => property !== "id");
  const values: unknown[] = [...properties.map((property) => Reflect.get(resource, property)), idempotencyKey];
  return values.map((value) => (typeof value === "bigint" ? String(value) : (value ?? null)));
}
