// What the descriptions of all resources share: bodies and errors. An example of an error has the message that the
// service sends: imported from the code that sends it, or taken from that code by running it.

import * as z from "zod/mini";
import { KEY_REQUIRED } from "../http/authentication.ts";
import { ApiError, type ErrorCode, FAILED, STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER } from "../http/idempotency.ts";
import { PLAIN_HTTP } from "../http/plain-http.ts";
import { TOO_MANY } from "../http/rate-limit.ts";
import { allowHeader, notAllowedMessage } from "../http/routing.ts";
import { allow, challenge, common, commonOrNoKey, type HeaderMap, retryAfter, version } from "./headers.ts";
import type { JsonSchema, Parameter } from "./schemas.ts";

export interface Content {
  "application/json": { schema: JsonSchema; example: unknown };
}

export interface Response {
  description: string;
  headers: HeaderMap;
  content?: Content;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  deprecated?: boolean;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, Response | { $ref: string }>;
}

/** The operations of each path, by method. */
export type Paths = Record<`/${string}`, Partial<Record<"get" | "post" | "put" | "patch" | "delete", Operation>>>;

const CODES = Object.keys(STATUS).map((code) => `\`${code}\``);

export const errorSchemas = {
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

/** A JSON body with the schema of the component `name`. */
export const body = (name: string, example: unknown): Content => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** An error response, whose example has this message. */
export const error = (code: ErrorCode, message: string, description: string, headers = common): Response => ({
  description,
  headers,
  content: body("Error", { code, message, status: STATUS[code] }),
});

/** A 400, whose example has the message of the error that `reject` throws. */
export function badRequest(description: string, reject: () => unknown): Response {
  try {
    reject();
  } catch (thrown) {
    if (thrown instanceof ApiError) return error("bad_request", thrown.message, description, commonOrNoKey);
  }
  throw new Error("The example is not rejected.");
}

const RETRY =
  `After a create with an \`${IDEMPOTENCY_HEADER}\`, send it again with the same key. Without one, if \`message\` ` +
  "says that it may have been added, look for it first.";
const WAIT = "Wait as many seconds as `Retry-After` says, and try again.";

/** A 500. `headers`: those of the operation. */
export const internalError = (headers: HeaderMap = {}) =>
  error("internal_error", FAILED.internal_error, `${FAILED.internal_error} ${RETRY}`, { ...headers, ...commonOrNoKey });

/** A 503. `headers`: those of the operation. */
export function serviceUnavailable(headers: HeaderMap = {}): Response {
  const description = `The store is temporarily unavailable, or closed. ${WAIT} ${RETRY}`;
  const all = { ...headers, ...retryAfter, ...common };
  return error("service_unavailable", FAILED.service_unavailable, description, all);
}

const ALLOWED = allowHeader(["GET", "POST"]);

/** The errors that operations have in common. */
export const errorResponses = {
  Unauthorized: error(
    "unauthorized",
    KEY_REQUIRED,
    "The API key is missing or not valid. Check the `Authorization` header.",
    { "WWW-Authenticate": challenge, ...version },
  ),
  Forbidden: error(
    "forbidden",
    PLAIN_HTTP,
    "The request came over plain HTTP, so others may have read the API key. Use https, and ask the operator for a " +
      "new key.",
  ),
  MethodNotAllowed: error(
    "method_not_allowed",
    notAllowedMessage("PUT", ALLOWED),
    "The path does not support this method. Use one of those in `Allow`: HEAD is allowed wherever GET is.",
    { Allow: allow, ...common },
  ),
  TooManyRequests: error("too_many_requests", TOO_MANY, `Your rate limit is exceeded. ${WAIT}`, {
    ...retryAfter,
    ...common,
  }),
  InternalError: internalError(),
  ServiceUnavailable: serviceUnavailable(),
};

/** A reference to one of these. */
export const shared = (name: keyof typeof errorResponses) => ({ $ref: `#/components/responses/${name}` });
