// Every rejected request is an ApiError, thrown anywhere and rendered here. A StoreFailure becomes a 500 or a 503, and
// anything else that is thrown a 500: the caller gets a fixed message, and the log gets the cause. A 429 or a 503 is
// always safe to repeat as it was sent, because generic clients do so.

import type * as z from "zod/mini";
import { StoreFailure } from "../values/store-failure.ts";
import { problemsOf } from "../values/wording.ts";
import type { ApiKey } from "./api-key.ts";
import { IDEMPOTENCY_HEADER } from "./idempotency.ts";
import { logFailure } from "./log.ts";
import { json } from "./responses.ts";

/** The status of each error code. A code says what has happened, for programs. Callers rely on these. */
export const STATUS = {
  invalid_request: 400,
  api_key_missing: 401,
  api_key_invalid: 401,
  plain_http: 403,
  id_not_found: 404,
  path_not_found: 404,
  method_not_allowed: 405,
  operation_removed: 410,
  body_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_used: 422,
  rate_limited: 429,
  internal_error: 500,
  outcome_unknown: 500,
  store_unavailable: 503,
  closed: 503,
} as const;

export type ErrorCode = keyof typeof STATUS;

/** The messages of failures. */
export const FAILED = {
  internal_error:
    "The service failed. Report the failure to the operator with the value of the response header cf-ray.",
  outcome_unknown:
    "The service failed, and what you sent may have been added: look for it before you send it again. To make " +
    `retries safe, send an ${IDEMPOTENCY_HEADER} with the first request.`,
  store_unavailable: "The store is temporarily unavailable; try again.",
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
  if (problems.length > 0) throw new ApiError("invalid_request", `${problems.join("; ")}.`);
  return results.map(({ data }) => data) as Parts;
}

/**
 * The response to a request for anything that was thrown. Logs the cause of a 500 or 503, and what has failed, also if
 * the caller gets `outcome_unknown`.
 */
export function renderError(thrown: unknown, { request, apiKey }: { request: Request; apiKey?: ApiKey | undefined }) {
  if (thrown instanceof ApiError) return render(thrown);
  const failure = thrown instanceof StoreFailure ? thrown : undefined;
  const retryAfter = failure?.retryAfter;
  const failed = retryAfter ? "store_unavailable" : "internal_error";
  logFailure(failed, failure ? failure.cause : thrown, request, apiKey?.caller);
  if (failure?.mayBeStored) return render(new ApiError("outcome_unknown", FAILED.outcome_unknown));
  return render(new ApiError(failed, FAILED[failed], retryAfter ? { "Retry-After": String(retryAfter) } : {}));
}

function render({ code, message, headers }: ApiError): Response {
  const status = STATUS[code];
  return json(JSON.stringify({ code, message, status }), status, headers);
}
