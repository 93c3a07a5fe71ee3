// What a query for animals may contain.

import * as z from "zod/mini";
import { afterParameter, limitParameter } from "../http/paging.ts";
import { singleParameter } from "../http/query.ts";
import { unknownNamesError } from "../values/wording.ts";
import { PetStatus } from "./pet.ts";

const parameters = {
  limit: limitParameter,
  status: z.optional(singleParameter(PetStatus)),
  after: afterParameter,
};

export const PetQuery = z.strictObject(parameters, unknownNamesError("query parameter", parameters));
export type PetQuery = z.infer<typeof PetQuery>;
