// How a resource's properties are kept in the columns of its table. SQLite itself prints a row as JSON, because D1 hands
// every integer over as a JavaScript number, rounded beyond 2^53; for the same reason an int64 goes in as a decimal string,
// which an INTEGER column stores exactly.

/** A stored resource, as JSON text. It begins with the id. */
export type StoredJson = string;

/** The column of every property; that of an optional one is null where the property is absent. */
export type Columns<Resource> = {
  [Property in keyof Resource]-?: undefined extends Resource[Property] ? OptionalColumn : string;
};

interface OptionalColumn {
  optional: string;
}

export type AnyColumns = Record<string, string | OptionalColumn>;

export const nameOf = (column: string | OptionalColumn): string =>
  typeof column === "string" ? column : column.optional;

/** The SQL that prints a row as JSON: the properties in the order of `columns`, optional ones last. */
export function jsonOf(columns: AnyColumns): string {
  const membersOf = (kind: "string" | "object") =>
    Object.entries(columns)
      .filter(([, column]) => typeof column === kind)
      .map(([property, column]) => `'${property}', ${nameOf(column)}`)
      .join(", ");
  const optional = membersOf("object");
  const required = `json_object(${membersOf("string")})`;
  // A merge patch adds no member that is null (RFC 7396).
  return optional ? `json_patch(${required}, json_object(${optional}))` : required;
}

/**
 * The SQL that stores a row, at most one under each idempotency key, for `valuesOf`. It gives the JSON of the row that
 * is stored, and whether it is `same` as the one that was sent: under a key that has a row already, that row stays.
 * The table has a column `idempotency_key`, with a unique index where it is not null.
 */
export function insertSql(table: string, columns: AnyColumns & { id: string }): string {
  const { id: _, ...others } = columns;
  const names = Object.values(others).map(nameOf);
  const parameters = names.map((_, index) => `?${index + 1}`);
  // The conflict is answered by an update that changes nothing: DO NOTHING returns no row.
  return `INSERT INTO ${table} (${names.join(", ")}, idempotency_key) VALUES (${parameters.join(", ")}, ?${names.length + 1})
    ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO UPDATE SET ${names[0]} = ${names[0]}
    RETURNING ${jsonOf(columns)} AS json, ${names.map((name, index) => `${name} IS ?${index + 1}`).join(" AND ")} AS same`;
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

/** The id of a stored resource, in decimal digits: read from its text, since one more column costs a fifth of a page. */
export function idOf(json: StoredJson): string {
  return json.slice('{"id":'.length, json.indexOf(","));
}
