// What the operations of all resources share: completeOperation adds it, so that no operation can lack it. The example
// of an error has the message that the service sends: imported from the code that sends it, or taken by running that.

import * as z from "zod/mini";
import { KEY_REQUIRED } from "../http/authentication.ts";
import { ApiError, type ErrorCode, FAILED, STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER } from "../http/idempotency.ts";
import { PLAIN_HTTP } from "../http/plain-http.ts";
import { TOO_MANY } from "../http/rate-limit.ts";
import {
  bookmarkHeader,
  bookmarkParameter,
  challengeHeader,
  commonHeaders,
  type HeaderMap,
  retryAfterHeader,
} from "./headers.ts";
import type { JsonSchema, Parameter } from "./schemas.ts";

export interface Content {
  "application/json": { schema: JsonSchema; example: unknown };
}

export interface ResponseObject {
  description: string;
  headers: HeaderMap;
  content?: Content | undefined;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  deprecated?: boolean;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, ResponseObject | { $ref: string }>;
}

/** The operations of a path, by method. */
export type PathItem = Partial<Record<"get" | "post" | "put" | "patch" | "delete", Operation>>;

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
export const jsonContent = (name: string, example: unknown): Content => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** The response of an operation that has used the store. `headers`: in addition to the common ones. */
export const successResponse = (description: string, content?: Content, headers: HeaderMap = {}): ResponseObject => ({
  description,
  headers: { ...bookmarkHeader, ...headers, ...commonHeaders(200) },
  content,
});

/** An error response, whose example has this message. `headers`: in addition to the common ones. */
export const errorResponse = (
  code: ErrorCode,
  message: string,
  description: string,
  headers: HeaderMap = {},
): ResponseObject => ({
  description,
  headers: { ...headers, ...commonHeaders(STATUS[code]) },
  content: jsonContent("Error", { code, message, status: STATUS[code] }),
});

/** A 400, whose example has the message of the error that `reject` throws. */
export function badRequest(description: string, reject: () => unknown): ResponseObject {
  try {
    reject();
  } catch (thrown) {
    if (thrown instanceof ApiError) return errorResponse("bad_request", thrown.message, description);
  }
  throw new Error("The example is not rejected.");
}

const RETRY =
  `After a create with an \`${IDEMPOTENCY_HEADER}\`, send it again with the same key. Without one, if \`message\` ` +
  "says that it may have been added, look for it first.";
const WAIT = "Wait as many seconds as `Retry-After` says, and try again.";

export const internalError = (headers?: HeaderMap) =>
  errorResponse("internal_error", FAILED.internal_error, `${FAILED.internal_error} ${RETRY}`, headers);

export function serviceUnavailable(headers?: HeaderMap): ResponseObject {
  const description = `The store is temporarily unavailable, or closed. ${WAIT} ${RETRY}`;
  const all = { ...headers, ...retryAfterHeader };
  return errorResponse("service_unavailable", FAILED.service_unavailable, description, all);
}

/** The errors that are the same for all operations. */
export const sharedErrors = {
  Unauthorized: errorResponse(
    "unauthorized",
    KEY_REQUIRED,
    "The API key is missing or not valid. Check the `Authorization` header.",
    challengeHeader,
  ),
  Forbidden: errorResponse(
    "forbidden",
    PLAIN_HTTP,
    "The request came over plain HTTP, so others may have read the API key. Use https, and ask the operator for a " +
      "new key.",
  ),
  TooManyRequests: errorResponse(
    "too_many_requests",
    TOO_MANY,
    `Your rate limit is exceeded. ${WAIT}`,
    retryAfterHeader,
  ),
  InternalError: internalError(),
  ServiceUnavailable: serviceUnavailable(),
};

const refer = (name: keyof typeof sharedErrors) => ({ $ref: `#/components/responses/${name}` });

/** An operation with what all have. It can replace a response, as getPet does. */
export const completeOperation = (operation: Operation): Operation => ({
  ...operation,
  parameters: [...operation.parameters, bookmarkParameter],
  responses: {
    401: refer("Unauthorized"),
    403: refer("Forbidden"),
    429: refer("TooManyRequests"),
    500: refer("InternalError"),
    503: refer("ServiceUnavailable"),
    ...operation.responses,
  },
});
