// What a backup covers: the tables of the store, and what a line of each holds.

import * as z from "zod/mini";
import type { AnyColumns } from "../../src/d1/columns.ts";
import { NewPet, Pet } from "../../src/pets/pet.ts";
import { PET_COLUMNS } from "../../src/pets/store.ts";
import { must } from "../../src/values/wording.ts";

// As the tables check it: the quotes that a caller may put around a key are no part of it.
const beKey = must("a string of 1 to 255 printable ASCII characters");
const idempotencyKey = z.optional(z.string(beKey).check(z.regex(/^[ -~]{1,255}$/, beKey)));
const KEY_COLUMN = { idempotencyKey: { optional: "idempotency_key" } };

/** In the order in which they can be filled: a table stands after those that it refers to. */
export const TABLES = [
  table("pets", { ...PET_COLUMNS, ...KEY_COLUMN }, { ...Pet.shape, ...NewPet.shape, idempotencyKey }),
];

export interface Table {
  name: string;
  /** The properties of a row, its Idempotency-Key included, with their columns. */
  columns: AnyColumns;
  /** A row in a file. A stock from elsewhere need not have ids. */
  row: z.ZodMiniObject<Record<string, z.core.$ZodType>>;
}

/** `shape`: the properties of a row; one that has a default may be absent from a line. */
function table<Shape extends { id: typeof Pet.shape.id } & z.core.$ZodShape>(
  name: string,
  columns: { [Property in keyof Shape]: AnyColumns[string] },
  shape: Shape,
): Table {
  const row = z.strictObject(
    { ...shape, id: z.optional(shape.id) },
    {
      error: (fault) =>
        fault.code === "unrecognized_keys"
          ? `unknown property ${fault.keys.join(", ")}: use ${Object.keys(columns).join(", ")}`
          : undefined,
    },
  );
  return { name, columns, row };
}
