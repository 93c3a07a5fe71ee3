// The responses of the description. An example of an error has the message that the service sends: imported from the code that
// sends it, or taken from that code by running it.

import * as z from "zod/mini";
import { BOOKMARK_HEADER } from "../d1/database.ts";
import { TOO_LARGE, unsupported } from "../http/body.ts";
import { ApiError, type ErrorCode, STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, usedFor } from "../http/idempotency.ts";
import { component, type JsonSchema } from "./schemas.ts";

export type Headers = Record<string, { description: string; required: boolean; schema: JsonSchema }>;
export type Responses = Record<string, { description: string; headers?: Headers; content?: object; links?: object }>;

export const errorComponents = {
  Error: component(
    z.object({
      code: z.enum(Object.keys(STATUS)),
      message: z.string(),
      status: z.int().check(z.minimum(400), z.maximum(599)),
    }),
    "Why a request failed.",
    {
      code: "Machine-readable error code.",
      message: "Human-readable description: one line that names every problem.",
      status: "The HTTP status code.",
    },
  ),
};

export const header = (description: string, schema: JsonSchema, required = true) => ({ description, required, schema });

/** A header that always has the same value. */
export const constant = (description: string, value: string) => header(description, { type: "string", const: value });

/** The response header with the bookmark; not `required` if the operation may respond without a query. */
export const bookmark = ({ required } = { required: true }): Headers => ({
  [BOOKMARK_HEADER]: header(
    "Identifies the state of the store that this response reflects. Send it with the next request to read a state at least as recent.",
    { type: "string" },
    required,
  ),
});

/** A JSON body with the schema of the component `name`. */
export const body = (name: string, example: unknown) => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** An error response, with the message of its example. */
export function error(code: ErrorCode, description: string, message: string, headers: Headers = {}): Responses {
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

/** The responses of an operation that lists pages of the component `name`; `message` is the example of its 400. */
export const pageResponses = (name: string, examples: object[], message: string): Responses => ({
  200: {
    description: "A page.",
    headers: {
      ...bookmark(),
      Link: header(
        "The next page (RFC 8288). Absent on the last page.",
        { type: "string", pattern: '^<[^<>]+>; rel="next"$' },
        false,
      ),
    },
    content: body(name, examples),
  },
  ...error("bad_request", "A query parameter is invalid, unknown or repeated.", message),
});

/** The errors of an operation that adds `what` once for each key; `message` is the example of its 400. */
export const creationErrors = (what: string, message: string): Responses => ({
  ...error(
    "bad_request",
    `The body is incomplete, is not valid JSON, lacks required fields or has invalid values; or the \`${IDEMPOTENCY_HEADER}\` is not valid.`,
    message,
  ),
  ...error("content_too_large", "The body is too large.", TOO_LARGE),
  ...error(
    "unsupported_media_type",
    "The body is not sent as JSON, or it has a Content-Encoding.",
    unsupported({ isJson: false, isPlain: true }),
    {
      "Accept-Encoding": header(
        "Present if the body has a Content-Encoding: none is accepted (RFC 9110).",
        { type: "string", const: "identity" },
        false,
      ),
    },
  ),
  ...error(
    "unprocessable_content",
    `The \`${IDEMPOTENCY_HEADER}\` was already used for a different ${what}.`,
    usedFor(what),
    bookmark(),
  ),
});
