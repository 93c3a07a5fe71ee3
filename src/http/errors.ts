// Every refusal is an ApiError, thrown anywhere and rendered here. What is not one is a fault of ours: the caller
// gets a fixed sentence, the log gets the cause.

import { logFailure } from "./log.ts";
import { json } from "./responses.ts";

/** The status of each error code: the status' name in snake case. */
export const STATUS = {
  bad_request: 400,
  unauthorized: 401,
  not_found: 404,
  method_not_allowed: 405,
  gone: 410,
  content_too_large: 413,
  unsupported_media_type: 415,
  unprocessable_content: 422,
  internal_error: 500,
  service_unavailable: 503,
} as const;

export type ErrorCode = keyof typeof STATUS;

/** A refusal that the caller sees: the interface's Error body, its status, and the headers that belong to it. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly headers: Record<string, string>;

  /** `cause` is what failed, where it is no refusal of ours: it goes into the log, and never to the caller. */
  constructor(code: ErrorCode, message: string, headers: Record<string, string> = {}, cause?: unknown) {
    super(message, { cause });
    this.code = code;
    this.headers = headers;
  }
}

/** The response to `request` for what was thrown; a status of 500 or more is logged. */
export function renderError(thrown: unknown, request: Request): Response {
  const { code, message, headers, cause } =
    thrown instanceof ApiError
      ? thrown
      : new ApiError("internal_error", "The service failed to answer; the failure has been logged.", {}, thrown);
  const status = STATUS[code];
  if (status >= 500) logFailure(code, cause, request);
  return json(JSON.stringify({ code, message, status }), status, headers);
}
