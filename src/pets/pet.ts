// What a pet is, and what may be asked for: the one source of types, validation and description. An int64 is a
// bigint here and nowhere a number.

import * as z from "zod/mini";

type Fault = { input?: unknown };

const must = (be: string) => ({
  error: ({ input }: Fault) => (input === undefined ? `is required and must be ${be}` : `must be ${be}`),
});

const INT64 = must("an integer between -9223372036854775808 and 9223372036854775807");
const NAME = must("a string with at least one character that is not white space");
const LIMIT = must("an integer from 1 to 100");

export const PetStatus = z.enum(["available", "pending", "sold"], must("one of available, pending, sold"));

export const NewPet = z.object(
  {
    name: z.string(NAME).check(
      z.regex(/\S/, NAME),
      z.refine((name) => name.isWellFormed(), "must be well-formed Unicode, without lone surrogates"),
    ),
    categoryId: z.int64(INT64),
    status: z._default(PetStatus, "available"),
  },
  { error: "The body must be a JSON object with name and categoryId" },
);
export type NewPet = z.infer<typeof NewPet>;

/** An int64 in its one canonical decimal form, as it stands in a URL: no sign but -, no leading zero. */
export const Int64Text = z.pipe(
  z.pipe(
    z.string().check(z.regex(/^(0|-?[1-9]\d{0,18})$/, INT64)),
    z.transform((digits: string) => BigInt(digits)),
  ),
  z.int64(INT64),
);

const Limit = z.pipe(
  z.pipe(z.string().check(z.regex(/^\d+$/, LIMIT)), z.transform(Number)),
  z.int(LIMIT).check(z.minimum(1, LIMIT), z.maximum(100, LIMIT)),
);

// A query gives each parameter a list of values.
const once = <T extends z.ZodMiniType<unknown, string>>(parameter: T) =>
  z.pipe(
    z.pipe(
      z.array(z.string()).check(z.maxLength(1, "must be given only once")),
      z.transform(([value]) => value),
    ),
    parameter,
  );

export const PetQuery = z.strictObject(
  {
    limit: z._default(once(Limit), 20),
    status: z.optional(once(PetStatus)),
    after: z.optional(once(Int64Text)),
  },
  {
    error: (fault) =>
      fault.code === "unrecognized_keys"
        ? `unknown query parameter ${fault.keys.map(encodeURIComponent).join(", ")}: use limit, status, after`
        : undefined,
  },
);
export type PetQuery = z.infer<typeof PetQuery>;
