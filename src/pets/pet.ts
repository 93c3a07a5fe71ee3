// What an animal is. Types, validation and description all derive from these schemas.

import * as z from "zod/mini";
import { Int64 } from "../values/int64.ts";
import { mustBeError } from "../values/wording.ts";

const STATUSES = ["available", "pending", "sold"] as const;

export const PetStatus = z.enum(STATUSES, mustBeError(`one of ${STATUSES.join(", ")}`));

/** Of Unicode code points, which is what zod, JSON Schema and SQLite count. */
const NAME_LIMIT = 1000;

const NAME_ERROR = mustBeError(
  `a string of at most ${NAME_LIMIT} characters, at least one of which is not white space`,
);

const Name = z.string(NAME_ERROR).check(
  z.minLength(1, NAME_ERROR),
  z.maxLength(NAME_LIMIT, NAME_ERROR),
  // Not a regular expression in the schema, because \s differs between the languages of callers.
  z.refine((name) => /\S/.test(name), NAME_ERROR),
  z.refine((name) => name.isWellFormed(), "must be well-formed Unicode, without lone surrogates"),
);

export const NewPet = z.object(
  { name: Name, categoryId: Int64, status: z._default(PetStatus, "available") },
  { error: "The body must be a JSON object with name and categoryId" },
);
export type NewPet = z.infer<typeof NewPet>;

export const Pet = z.object({ id: Int64, ...NewPet.shape, status: PetStatus });
export type Pet = z.infer<typeof Pet>;
