// Every rejected request is an ApiError, thrown anywhere and rendered here. A StoreFailure becomes a 500 or a 503, and
// anything else that is thrown a 500: the caller gets a fixed message, and the log gets the cause.

import type * as z from "zod/mini";
import { StoreFailure } from "../values/store-failure.ts";
import { problemsOf } from "../values/wording.ts";
import { IDEMPOTENCY_HEADER } from "./idempotency.ts";
import type { ApiKey } from "./key-log.ts";
import { logFailure } from "./log.ts";
import { json } from "./responses.ts";

/** The status of each error code. A code is the name of its status in snake case. */
export const STATUS = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  gone: 410,
  content_too_large: 413,
  unsupported_media_type: 415,
  unprocessable_content: 422,
  too_many_requests: 429,
  internal_error: 500,
  service_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof STATUS;

const REPORT = "Report the failure to the operator with the value of the response header cf-ray.";
const LOOK_FIRST =
  "what you sent may have been added: look for it before you try again. To make retries safe, send an " +
  `${IDEMPOTENCY_HEADER} with the first request.`;

export const FAILED = {
  internal_error: `The service failed. ${REPORT}`,
  service_unavailable: "The store is temporarily unavailable; try again.",
};

/** The messages of failures after which sending the same again could store it twice. */
const MAY_BE_STORED: typeof FAILED = {
  internal_error: `The service failed, and ${LOOK_FIRST} ${REPORT}`,
  service_unavailable: `The store is temporarily unavailable, and ${LOOK_FIRST}`,
};

/** A rejected request: the interface's Error body, its status, and the headers that belong to it. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

type Results<Parts> = { [Part in keyof Parts]: z.core.util.SafeParseResult<Parts[Part]> };

/** The parts of a request, as schemas parsed them. Throws a 400 that names the problems in every part. */
export function validated<Parts extends unknown[]>(...results: Results<Parts>): Parts {
  const problems = results.flatMap(({ error }) => (error ? problemsOf(error) : []));
  if (problems.length > 0) throw new ApiError("bad_request", `${problems.join("; ")}.`);
  return results.map(({ data }) => data) as Parts;
}

/** The response to a request for anything that was thrown. Logs the cause of a 500 or 503. */
export function renderError(thrown: unknown, { request, apiKey }: { request: Request; apiKey?: ApiKey | undefined }) {
  if (thrown instanceof ApiError) return render(thrown);
  const failure = thrown instanceof StoreFailure ? thrown : undefined;
  const retryAfter = failure?.retryAfter;
  const code = retryAfter ? "service_unavailable" : "internal_error";
  logFailure(code, failure ? failure.cause : thrown, request, apiKey?.caller);
  const message = (failure?.mayBeStored ? MAY_BE_STORED : FAILED)[code];
  return render(new ApiError(code, message, retryAfter ? { "Retry-After": String(retryAfter) } : {}));
}

function render({ code, message, headers }: ApiError): Response {
  const status = STATUS[code];
  return json(JSON.stringify({ code, message, status }), status, headers);
}
