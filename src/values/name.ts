// The name of an animal or of anything else. It is stored as sent, to the last code point.

import * as z from "zod/mini";
import { must } from "./wording.ts";

const beName = must("a string with at least one character that is not white space");

export const Name = z.string(beName).check(
  z.regex(/\S/, beName),
  z.refine((name) => name.isWellFormed(), "must be well-formed Unicode, without lone surrogates"),
);
