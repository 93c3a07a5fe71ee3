// The responses of the description. An example of an error has the message that the service sends: imported from the code that
// sends it, or taken from that code by running it.

import * as z from "zod/mini";
import { BOOKMARK_HEADER } from "../d1/database.ts";
import { ApiError, type ErrorCode, STATUS } from "../http/errors.ts";
import type { JsonSchema } from "./schemas.ts";

export type Headers = Record<string, { description: string; required: boolean; schema: JsonSchema }>;
export type Responses = Record<string, { description: string; headers?: Headers; content?: object }>;

export const errorComponents = {
  Error: {
    schema: z.object({
      code: z.enum(Object.keys(STATUS)),
      message: z.string(),
      status: z.int().check(z.minimum(400), z.maximum(599)),
    }),
    description: "Why a request failed.",
    properties: {
      code: "Machine-readable error code.",
      message: "Human-readable description, on one line. That of a 400 names every problem.",
      status: "The HTTP status code.",
    },
  },
};

export const header = (description: string, schema: JsonSchema, required = true) => ({ description, required, schema });

/** A header that always has the same value. */
export const constant = (description: string, value: string) => header(description, { type: "string", const: value });

/** The response header with the bookmark; not `required` if the operation may respond without a query. */
export const bookmark = ({ required } = { required: true }): Headers => ({
  [BOOKMARK_HEADER]: header(
    "Identifies the state of the store that this response reflects. Send the newest one with every request to read a state at least as recent.",
    { type: "string" },
    required,
  ),
});

/** A JSON body with the schema of the component `name`. */
export const body = (name: string, example: unknown) => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** An error response: `message` is that of its example, and describes it unless there is a `description`. */
export function error(code: ErrorCode, message: string, headers: Headers = {}, description = message): Responses {
  const status = STATUS[code];
  return { [status]: { description, headers, content: body("Error", { code, message, status }) } };
}

/** The message of the error that `reject` throws. */
export function messageOf(reject: () => unknown): string {
  try {
    reject();
  } catch (thrown) {
    if (thrown instanceof ApiError) return thrown.message;
  }
  throw new Error("The example is not rejected.");
}
