// What every operation has in common: the errors, the bookmark, the headers that name the version and the API key, and
// the methods that its path allows.

import { BOOKMARK_HEADER } from "../d1/database.ts";
import { CHALLENGE, INVALID_TOKEN, KEY_REQUIRED } from "../http/authentication.ts";
import { FAILURES } from "../http/errors.ts";
import { IDEMPOTENCY_HEADER } from "../http/idempotency.ts";
import { PLAIN_HTTP } from "../http/plain-http.ts";
import { TOO_MANY } from "../http/rate-limit.ts";
import { KEY_NAME_HEADER, VERSION_HEADER } from "../http/responses.ts";
import { allowHeader, notAllowedMessage } from "../http/routing.ts";
import { type Content, error, fixedHeader, type HeaderMap, header, type Responses } from "./components.ts";
import { mapValues, type Parameter } from "./schemas.ts";

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  deprecated?: boolean;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  /** Without those that every operation has. */
  responses: Responses;
  /** The headers of every response that the operation itself sends, errors included. */
  headers?: HeaderMap;
}

/** The operations of a path, by method. */
export type PathItem = Partial<Record<"get" | "post" | "put" | "patch" | "delete", Operation>>;

const bookmarkParameter: Parameter = {
  name: BOOKMARK_HEADER,
  in: "header",
  description:
    `The newest \`${BOOKMARK_HEADER}\` that you received: the response reflects at least the state that it ` +
    "identifies, so you always read your own writes. With `latest`, the response is always up to date. A bookmark is " +
    "valid only at the base URL that issued it, and its format can change.",
  schema: { type: "string" },
};

const version: HeaderMap = {
  [VERSION_HEADER]: header("Identifies the version of the service that responded.", { type: "string" }),
};

// A 401 has no key. Nor has a 400 for the Host, which is checked before the key, or a 500 if no secret is a valid key.
const keyNameHeader = (status: string): HeaderMap => ({
  ...(status !== "401" && {
    [KEY_NAME_HEADER]: header(
      "The name of your API key, by which the operator knows you. Present once the service has recognized your key.",
      { type: "string", pattern: "^API_KEY(_[A-Za-z0-9_]+)?$" },
      !["400", "500"].includes(status),
    ),
  }),
});

const challenge = header('The challenge (RFC 6750), with `error="invalid_token"` if a token was sent.', {
  type: "string",
  enum: [CHALLENGE, INVALID_TOKEN],
});

/** The paths of the document: each operation with what all operations have in common. */
export function describePaths(paths: Record<`/${string}`, PathItem>) {
  return mapValues(paths, (item) => {
    const methods = Object.keys(item).map((method) => method.toUpperCase());
    return mapValues({ ...item }, ({ headers = {}, parameters, responses, ...operation }: Operation, method) => {
      const own = mapValues(responses, (response) => ({ ...response, headers: { ...headers, ...response.headers } }));
      const all: Responses = { ...own, ...commonErrors(method, methods, headers) };
      return {
        ...operation,
        parameters: [...parameters, bookmarkParameter],
        responses: mapValues(all, (response, status) => ({
          ...response,
          headers: { ...response.headers, ...keyNameHeader(status), ...version },
        })),
      };
    });
  });
}

const AGAIN = `send it again with the same \`${IDEMPOTENCY_HEADER}\` or, if it had none, look for it first.`;
const WAIT = "Wait as many seconds as `Retry-After` says";
const INSECURE =
  "The request came over plain HTTP, so others may have read the API key. Use https, and ask the operator for a new " +
  "key.";
const UNAUTHORIZED = "The API key is missing or not valid. Check the `Authorization` header.";
const NOT_ALLOWED =
  "The path does not support this method. Use one of those in `Allow`: HEAD is allowed wherever GET is.";

/** What a failure means, if it is certain that nothing was stored, and after a POST, whose examples have no key. */
const WHEN_FAILED = {
  nothingStored: FAILURES.internal_error.nothingStored,
  mayBeStored: `The service failed, and what you sent may have been added: ${AGAIN}`,
};
const WHEN_UNAVAILABLE = {
  nothingStored: `The store is temporarily unavailable, or closed. ${WAIT}, and try again.`,
  mayBeStored:
    `The store is temporarily unavailable, and what you sent may have been added. ${WAIT}, and then ${AGAIN} ` +
    "If `message` says that the service is closed for maintenance, nothing was added.",
};

function commonErrors(method: string, pathMethods: string[], headers: HeaderMap): Responses {
  const methods = allowHeader(pathMethods);
  const wrong = ["PUT", "PATCH", "DELETE", "TRACE"].find((candidate) => !pathMethods.includes(candidate)) ?? "";
  const allow = { Allow: fixedHeader("Present on a 405: the methods that the path supports (RFC 9110).", methods) };
  const optional = mapValues(headers, (described) => ({ ...described, required: false }));
  const retryAfter = { "Retry-After": header("Seconds to wait before a retry.", { type: "integer", minimum: 1 }) };
  const effect = method === "post" ? "mayBeStored" : "nothingStored";
  const { internal_error: internal, service_unavailable: unavailable } = FAILURES;
  return {
    ...error("unauthorized", KEY_REQUIRED, { "WWW-Authenticate": challenge }, UNAUTHORIZED),
    ...error("forbidden", PLAIN_HTTP, {}, INSECURE),
    ...error("method_not_allowed", notAllowedMessage(wrong, methods), allow, NOT_ALLOWED),
    ...error("too_many_requests", TOO_MANY, retryAfter, `Your rate limit is exceeded. ${WAIT}, and try again.`),
    ...error("internal_error", internal[effect], optional, WHEN_FAILED[effect]),
    ...error("service_unavailable", unavailable[effect], { ...optional, ...retryAfter }, WHEN_UNAVAILABLE[effect]),
  };
}
