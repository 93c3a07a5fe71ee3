// What a query for animals may contain.

import * as z from "zod/mini";
import { afterParameter, limitParameter } from "../http/paging.ts";
import { singleParameter } from "../http/query.ts";
import { Int64Text } from "../values/int64.ts";
import { unknownNamesError } from "../values/wording.ts";
import { PetStatus } from "./pet.ts";

const parameters = {
  limit: limitParameter,
  status: z.optional(singleParameter(PetStatus)),
  id: z.optional(singleParameter(Int64Text)),
  after: afterParameter,
};

export const PetQuery = z.strictObject(parameters, unknownNamesError("query parameter", parameters));
export type PetQuery = z.infer<typeof PetQuery>;
