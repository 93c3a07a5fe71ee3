// What the operations of all resources share: completeOperation adds it, so that no operation can lack it. The example
// of an error has the message that the service sends: imported from the code that sends it, or taken by running that.

import * as z from "zod/mini";
import { KEY_INVALID, KEY_REQUIRED } from "../http/authentication.ts";
import { ApiError, type ErrorCode, FAILED, STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER } from "../http/idempotency.ts";
import { CLOSED } from "../http/maintenance.ts";
import { PLAIN_HTTP } from "../http/plain-http.ts";
import { TOO_MANY } from "../http/rate-limit.ts";
import { NOTHING_HERE, notAllowedMessage } from "../http/routing.ts";
import {
  bookmarkHeader,
  bookmarkParameter,
  challengeHeader,
  commonHeaders,
  type HeaderMap,
  header,
  keyNameHeader,
  optional,
  retryAfterHeader,
} from "./headers.ts";
import type { JsonSchema, Parameter } from "./schemas.ts";

export interface Content {
  "application/json": {
    schema: JsonSchema;
    /** Of a success or a request. */
    example?: unknown;
    /** Of an error, by its code. */
    examples?: Record<string, { summary: string; value: { code: string; message: string; status: number } }>;
  };
}

export interface ResponseObject {
  description: string;
  headers: HeaderMap;
  content: Content;
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
    example: { code: "api_key_missing", message: KEY_REQUIRED, status: STATUS.api_key_missing },
  },
};

/** A JSON body with the schema of the component `name`. */
export const jsonContent = (name: string, example: unknown): Content => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});

/** The response of an operation that has used the store. `headers`: in addition to the common ones. */
export const successResponse = (description: string, content: Content, headers: HeaderMap = {}): ResponseObject => ({
  description,
  headers: { ...bookmarkHeader, ...headers, ...commonHeaders(200) },
  content,
});

/** An error: its message and, if that does not say what it means and what to do, a summary that does. */
type DescribedError = [code: ErrorCode, message: string, summary?: string];

/** The response with the status that these errors have. `headers`: in addition to the common ones. */
export function errorResponse(headers: HeaderMap, ...errors: [DescribedError, ...DescribedError[]]): ResponseObject {
  const [[code, message, summary = message]] = errors;
  const examples = errors.map(([code, message, summary = message]) => {
    return [code, { summary, value: { code, message, status: STATUS[code] } }] as const;
  });
  const summaries = examples.map(([code, { summary }]) => `\`${code}\`: ${summary}`);
  return {
    description: errors.length === 1 ? summary : summaries.join(" "),
    headers: { ...commonHeaders(STATUS[code]), ...headers },
    content: {
      "application/json": { schema: { $ref: "#/components/schemas/Error" }, examples: Object.fromEntries(examples) },
    },
  };
}

/** A 400, whose example has the message of the error that `reject` throws. */
export function badRequest(summary: string, reject: () => unknown): ResponseObject {
  try {
    reject();
  } catch (thrown) {
    if (thrown instanceof ApiError) return errorResponse({}, ["invalid_request", thrown.message, summary]);
  }
  throw new Error("The example is not rejected.");
}

const SEND_AGAIN =
  "Wait as many seconds as `Retry-After` says, and send the same request again, with its " +
  `\`${IDEMPOTENCY_HEADER}\` if it had one.`;

export const internalError: DescribedError = [
  "internal_error",
  FAILED.internal_error,
  "The service failed. Report the failure to the operator with the value of `cf-ray`. A create with an " +
    `\`${IDEMPOTENCY_HEADER}\` may have been stored: send it again with the same key.`,
];

export const serviceUnavailable = (headers?: HeaderMap): ResponseObject =>
  errorResponse(
    { ...headers, ...retryAfterHeader },
    ["store_unavailable", FAILED.store_unavailable, `The store is temporarily unavailable. ${SEND_AGAIN}`],
    ["closed", CLOSED, `The service is closed for maintenance, and the request was not carried out. ${SEND_AGAIN}`],
  );

/** The errors that are the same for all operations. */
export const sharedErrors = {
  Unauthorized: errorResponse(
    challengeHeader,
    ["api_key_missing", KEY_REQUIRED, "Send an API key as the bearer token, in the `Authorization` header."],
    ["api_key_invalid", KEY_INVALID, "Check the API key: it must be complete, and one of this environment."],
  ),
  Forbidden: errorResponse({}, ["plain_http", PLAIN_HTTP]),
  TooManyRequests: errorResponse(retryAfterHeader, [
    "rate_limited",
    TOO_MANY,
    `Your rate limit is exceeded, and the request was not carried out. ${SEND_AGAIN}`,
  ]),
  InternalError: errorResponse({}, internalError),
  ServiceUnavailable: serviceUnavailable(),
};

/** The errors of requests that are not for an operation. Outside /v1, they need no key. */
export const pathErrors: Record<string, ResponseObject> = {
  404: errorResponse(optional(keyNameHeader), [
    "path_not_found",
    NOTHING_HERE,
    "Check the path, and the base URL before it.",
  ]),
  405: errorResponse(
    { ...optional(keyNameHeader), Allow: header("The methods that the path supports.", { type: "string" }) },
    [
      "method_not_allowed",
      notAllowedMessage("DELETE", "GET, HEAD, OPTIONS"),
      "The path does not support the method. `Allow` lists those that it supports: HEAD wherever there is GET.",
    ],
  ),
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
