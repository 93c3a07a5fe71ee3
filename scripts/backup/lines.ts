// The format of a backup: one line for each animal, a JSON object of its properties, its Idempotency-Key, its caller,
// and when it was added. Animals from elsewhere need not have the last three.

import * as z from "zod/mini";
import { CALLER_NAME } from "../../src/http/authentication.ts";
import { BODY_LIMIT } from "../../src/http/body.ts";
import { NewPet, Pet } from "../../src/pets/pet.ts";
import { Int64 } from "../../src/values/int64.ts";
import { parseJson, UTF_8 } from "../../src/values/json.ts";
import { must, noOther, problemsOf } from "../../src/values/wording.ts";

// After the greatest int64, SQLite chooses random ids, and callers who page would miss these animals.
const MAX_ID = 2n ** 62n;
const beId = must(`an integer from 1 to ${MAX_ID}`);

// As the table checks it: the quotes that a caller may put around a key do not belong to it.
const beKey = must("a string of 1 to 255 printable ASCII characters");
const beCaller = must("the name of a caller, such as API_KEY_SHOP");

const shape = {
  ...Pet.shape,
  ...NewPet.shape,
  id: z.optional(Pet.shape.id.check(z.gte(1n, beId), z.lte(MAX_ID, beId))),
  idempotencyKey: z.optional(z.string(beKey).check(z.regex(/^[ -~]{1,255}$/, beKey))),
  createdBy: z.optional(z.string(beCaller).check(z.regex(CALLER_NAME, beCaller))),
  createdAt: z.optional(Int64),
};
const unknown = noOther("property", shape);

/** The properties of a line. Each is a column of pets. */
export const PROPERTIES = Object.keys(shape);

/** The column of a property: the same name in snake case. */
export const columnOf = (property: string) => property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const Row = z
  .strictObject(shape, { error: (issue) => unknown.error(issue) ?? "is not a JSON object" })
  .check(z.refine((row) => row.createdBy || !row.idempotencyKey, "idempotencyKey is possible only with createdBy"));

/** The longest line, in bytes. An animal of which every character is an escape fits. */
export const LINE_BYTES = BODY_LIMIT;

/** What a line contains, by the service's own rules, or what is wrong with it. */
export function checkLine(bytes: Uint8Array): z.infer<typeof Row> | string {
  if (bytes.length > LINE_BYTES) return `is longer than ${LINE_BYTES} bytes`;
  let value: unknown;
  try {
    value = parseJson(UTF_8.decode(bytes));
  } catch {
    return "is not valid JSON in UTF-8";
  }
  const { success, data, error } = Row.safeParse(value);
  return success ? data : problemsOf(error).join("; ");
}

/** A line that is known to be valid. */
export const parseLine = (line: string) => parseJson(line) as { id: bigint };
