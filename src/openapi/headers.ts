// The headers of requests and responses that operations have in common.

import { CHALLENGE, INVALID_TOKEN, SECRET_NAME } from "../http/authentication.ts";
import { BOOKMARK_HEADER } from "../http/bookmark.ts";
import { STATUS } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER, IdempotencyKey } from "../http/idempotency.ts";
import { KEY_NAME_HEADER, VERSION_HEADER } from "../http/responses.ts";
import { type JsonSchema, jsonSchemas, mapValues, type Parameter } from "./schemas.ts";

export type HeaderMap = Record<string, { description: string; required: boolean; schema: JsonSchema }>;

export const header = (description: string, schema: JsonSchema, required = true) => ({ description, required, schema });

export const fixedHeader = (description: string, value: string, required = true) =>
  header(description, { type: "string", const: value }, required);

export const optional = (headers: HeaderMap): HeaderMap =>
  mapValues(headers, (described) => ({ ...described, required: false }));

const versionHeader: HeaderMap = {
  [VERSION_HEADER]: header("The commit of the service that responded, or `unknown`.", { type: "string" }),
};

export const keyNameHeader: HeaderMap = {
  [KEY_NAME_HEADER]: header(
    "The name of your API key, by which the operator knows you. Present once the service has recognized your key.",
    { type: "string", pattern: SECRET_NAME.source },
  ),
};

/** What every response with this status has: the commit and, once the key is known to be valid, its name. */
export function commonHeaders(status: number): HeaderMap {
  if (status === STATUS.api_key_missing) return versionHeader;
  // A 400 can be about the Host, which is checked before the key. A 500 can mean that no secret is a valid key.
  const mayLackKey = status === STATUS.invalid_request || status === STATUS.internal_error;
  return { ...(mayLackKey ? optional(keyNameHeader) : keyNameHeader), ...versionHeader };
}

export const bookmarkHeader: HeaderMap = {
  [BOOKMARK_HEADER]: header(
    "Identifies the state of the store that this response reflects. Send the newest one with every request to " +
      "read a state at least as recent.",
    { type: "string" },
  ),
};

export const bookmarkParameter: Parameter = {
  name: BOOKMARK_HEADER,
  in: "header",
  description:
    `The newest \`${BOOKMARK_HEADER}\` that you received: the response reflects at least the state that it ` +
    "identifies, so you always read your own writes. With `latest`, the response is always up to date. A bookmark is " +
    "valid only at the base URL that issued it, and its format can change.",
  schema: { type: "string" },
};

export const linkHeader: HeaderMap = {
  Link: header("The next page (RFC 8288), if any.", { type: "string", pattern: '^<[^<>]+>; rel="next"$' }, false),
};

export const challengeHeader: HeaderMap = {
  "WWW-Authenticate": header('The challenge (RFC 6750), with `error="invalid_token"` if a token was sent.', {
    type: "string",
    enum: [CHALLENGE, INVALID_TOKEN],
  }),
};

export const retryAfterHeader: HeaderMap = {
  "Retry-After": header("Seconds to wait before a retry.", { type: "integer", minimum: 1 }),
};

export const idempotencyKeyParameter: Parameter = {
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
