// What a backup covers: the tables of the store, and what a line of each contains.

import * as z from "zod/mini";
import { type AnyColumns, nameOf } from "../../src/d1/columns.ts";
import { NewPet, Pet } from "../../src/pets/pet.ts";
import { PET_COLUMNS } from "../../src/pets/store.ts";
import { must, noOther } from "../../src/values/wording.ts";

// As the tables check it: the quotes that a caller may put around a key do not belong to it.
const beKey = must("a string of 1 to 255 printable ASCII characters");
const idempotencyKey = z.optional(z.string(beKey).check(z.regex(/^[ -~]{1,255}$/, beKey)));
const KEY_COLUMN = { idempotencyKey: { optional: "idempotency_key" } };

/** In the order in which they can be filled: a table comes after those that it refers to. */
export const TABLES = [
  table("pets", { ...PET_COLUMNS, ...KEY_COLUMN }, { ...Pet.shape, ...NewPet.shape, idempotencyKey }),
];

/** The columns that a backup covers, and the SQL that lists those of a store: both as pets.id. */
export const COVERED = TABLES.flatMap(({ name, columns }) => Object.values(columns).map((c) => `${name}.${nameOf(c)}`));
export const STORED_COLUMNS = `SELECT tables.name || '.' || columns.name AS name
  FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
  WHERE tables.type = 'table' AND tables.name <> 'd1_migrations'
  AND tables.name NOT GLOB '_cf_*' AND tables.name NOT GLOB 'sqlite_*'`;

export interface Table {
  name: string;
  /** The properties of a row, its Idempotency-Key included, with their columns. */
  columns: AnyColumns;
  /** A row in a file. Animals from elsewhere need not have ids. */
  row: z.ZodMiniObject<Record<string, z.core.$ZodType>>;
}

/** `shape`: the properties of a row. One with a default can be omitted from a line. */
function table<Shape extends { id: typeof Pet.shape.id } & z.core.$ZodShape>(
  name: string,
  columns: { [Property in keyof Shape]: AnyColumns[string] },
  shape: Shape,
): Table {
  const row = z.strictObject({ ...shape, id: z.optional(shape.id) }, noOther("property", columns));
  return { name, columns, row };
}
