// What a pet is, and what may be asked for: the one source of types, validation and description. An int64 is a
// bigint here and nowhere a number.

import * as z from "zod/mini";

const must = (be: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? `is required and must be ${be}` : `must be ${be}`),
});

export const INT64 = { minimum: -(2n ** 63n), maximum: 2n ** 63n - 1n };
const LIMIT = { minimum: 1, maximum: 100 };
const STATUSES = ["available", "pending", "sold"] as const;

const beInt64 = must(`an integer between ${INT64.minimum} and ${INT64.maximum}`);
const beName = must("a string with at least one character that is not white space");
const beLimit = must(`an integer from ${LIMIT.minimum} to ${LIMIT.maximum}`);

const Int64 = z.int64(beInt64);

export const PetStatus = z.enum(STATUSES, must(`one of ${STATUSES.join(", ")}`));

export const NewPet = z.object(
  {
    name: z.string(beName).check(
      z.regex(/\S/, beName),
      z.refine((name) => name.isWellFormed(), "must be well-formed Unicode, without lone surrogates"),
    ),
    categoryId: Int64,
    status: z._default(PetStatus, "available"),
  },
  { error: "The body must be a JSON object with name and categoryId" },
);
export type NewPet = z.infer<typeof NewPet>;

export const Pet = z.object({ id: Int64, name: NewPet.shape.name, categoryId: Int64, status: PetStatus });

/** An int64 in its one canonical decimal form, as it stands in a URL: no sign but -, no leading zero. */
export const Int64Text = z.pipe(
  z.pipe(
    z.string().check(z.regex(/^(0|-?[1-9]\d{0,18})$/, beInt64)),
    z.transform((digits: string) => BigInt(digits)),
  ),
  Int64,
);

const Limit = z.pipe(
  z.pipe(z.string().check(z.regex(/^\d+$/, beLimit)), z.transform(Number)),
  z.int(beLimit).check(z.minimum(LIMIT.minimum, beLimit), z.maximum(LIMIT.maximum, beLimit)),
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

const parameters = {
  limit: z._default(once(Limit), 20),
  status: z.optional(once(PetStatus)),
  after: z.optional(once(Int64Text)),
};

export const PetQuery = z.strictObject(parameters, {
  error: (fault) =>
    fault.code === "unrecognized_keys"
      ? `unknown query parameter ${fault.keys.map(encodeURIComponent).join(", ")}: use ${Object.keys(parameters).join(", ")}`
      : undefined,
});
export type PetQuery = z.infer<typeof PetQuery>;
