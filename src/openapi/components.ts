// What the descriptions of all resources share: headers, bodies and errors. An example of an error has the message that
// the service sends: imported from the code that sends it, or taken from that code by running it.

import * as z from "zod/mini";
import { BOOKMARK_HEADER } from "../d1/database.ts";
import { KEY_REQUIRED } from "../http/authentication.ts";
import { TOO_LARGE, unsupportedMessage } from "../http/body.ts";
import { ApiError, type ErrorCode, STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../http/idempotency.ts";
import { type JsonSchema, jsonSchemas, type Parameter } from "./schemas.ts";

export interface Content {
  "application/json": { schema: JsonSchema; example: unknown };
}

export type HeaderMap = Record<string, { description: string; required: boolean; schema: JsonSchema }>;
export type Responses = Record<string, { description: string; headers?: HeaderMap; content?: Content }>;

const CODES = Object.keys(STATUS).map((code) => `\`${code}\``);

export const errorComponents = {
  Error: {
    schema: z.object({
      code: z.string(),
      message: z.string(),
      status: z.int().check(z.minimum(400), z.maximum(599)),
    }),
    description: "Why a request failed.",
    properties: {
      // Not an enum, because the interface does not limit its values.
      code: `Machine-readable error code, currently one of ${CODES.join(", ")}.`,
      message:
        "Human-readable description, on one line. For a 400, it names every problem, but at most five unknown names.",
      status: "The HTTP status code.",
    },
    example: { code: "unauthorized", message: KEY_REQUIRED, status: STATUS.unauthorized },
  },
};

export const header = (description: string, schema: JsonSchema, required = true) => ({ description, required, schema });

/** A header that always has the same value. */
export const fixedHeader = (description: string, value: string, required = true) =>
  header(description, { type: "string", const: value }, required);

/** The response header with the bookmark; not `required` if the operation may respond without a query. */
export const bookmark = ({ required } = { required: true }): HeaderMap => ({
  [BOOKMARK_HEADER]: header(
    "Identifies the state of the store that this response reflects. Send the newest one with every request to " +
      "read a state at least as recent.",
    { type: "string" },
    required,
  ),
});

/** The `Link` of a list. */
export const link: HeaderMap = {
  Link: header("The next page (RFC 8288), if any.", { type: "string", pattern: '^<[^<>]+>; rel="next"$' }, false),
};

/** The request header of a creation. */
export const idempotencyKey: Parameter = {
  name: IDEMPOTENCY_HEADER,
  in: "header",
  description:
    "Makes the request safe to retry. The first request with a key adds what it sends; sending the same again " +
    "returns the same 201, body and `Location`, and sending something different is rejected with 422. " +
    "Each caller has Idempotency-Keys of their own, and these never expire. Use a new UUID for each creation. A key " +
    "is 1 to 255 printable ASCII characters other than double quotes. Put a key that contains a comma in double " +
    "quotes, which are not part of the key.",
  schema: { ...jsonSchemas({ IdempotencyKey }, "input")["IdempotencyKey"] },
};

/** A JSON body with the schema of the component `name`. */
export const body = (name: string, example: unknown): Content => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** An error response: `message` is that of its example, and describes it unless there is a `description`. */
export function error(code: ErrorCode, message: string, headers: HeaderMap = {}, description = message): Responses {
  const status = STATUS[code];
  return { [status]: { description, headers, content: body("Error", { code, message, status }) } };
}

/** The errors of every operation with a body, apart from a 400. */
export const bodyErrors: Responses = {
  ...error("content_too_large", TOO_LARGE, {}, `${TOO_LARGE} Leave out unknown properties and white space.`),
  ...error("unsupported_media_type", unsupportedMessage({ isJson: false, isPlain: false }), {
    "Accept-Encoding": fixedHeader(
      "Present on a 415 if the request body has a Content-Encoding: the only one that the service accepts (RFC 9110).",
      "identity",
      false,
    ),
  }),
};

/** A 400, whose example has the message of the error that `reject` throws. */
export function badRequest(description: string, reject: () => unknown): Responses {
  try {
    reject();
  } catch (thrown) {
    if (thrown instanceof ApiError) return error("bad_request", thrown.message, {}, description);
  }
  throw new Error("The example is not rejected.");
}
