// Reads a JSON request body. Its media type, encoding and size are checked before it is parsed; the size also while
// reading, because a chunked body does not announce it.

import * as z from "zod/mini";
import { parseJson, UTF_8 } from "../values/json.ts";
import { ApiError } from "./errors.ts";

type Bytes = ArrayBuffer | Uint8Array;

/** In bytes. The longest animal fits, even if every character is written as JSON escapes. */
export const BODY_LIMIT = 16 * 1024;
export const TOO_LARGE = `The body must be at most ${BODY_LIMIT} bytes.`;

// The suffix +json: RFC 6839, section 3.1. A token: RFC 9110, section 5.6.2.
const JSON_TYPE = /^(application\/json|[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+\+json)$/i;

/** A body that is sent as JSON. Throws 415, 413, and 400 if the body is incomplete. */
export async function readBody(request: Request): Promise<Bytes> {
  const [mediaType = ""] = (request.headers.get("Content-Type") ?? "").split(";", 1);
  const encoding = request.headers.get("Content-Encoding") ?? "identity";
  const isJson = JSON_TYPE.test(mediaType.trim());
  const isUnencoded = encoding.toLowerCase() === "identity";
  if (!isJson || !isUnencoded) {
    // RFC 9110, section 15.5.16: this header tells the caller that the encoding is the problem.
    const headers: Record<string, string> = isUnencoded ? {} : { "Accept-Encoding": "identity" };
    throw new ApiError("unsupported_media_type", unsupportedMessage({ isJson, isUnencoded }), headers);
  }
  return readBytes(request);
}

export function unsupportedMessage({ isJson, isUnencoded }: { isJson: boolean; isUnencoded: boolean }): string {
  const how = [!isJson && "as Content-Type: application/json", !isUnencoded && "without a Content-Encoding"];
  return `The body must be sent ${how.filter(Boolean).join(" and ")}.`;
}

/** A schema for a body. It reports malformed JSON together with all other problems of a request. */
export const JsonBody = z.transform((bytes: Bytes, { issues }): unknown => {
  try {
    return parseJson(UTF_8.decode(bytes));
  } catch (failure) {
    const malformed = `The body is ${bytes.byteLength === 0 ? "empty" : "not valid JSON"} (it must be one JSON object)`;
    const message = failure instanceof TypeError ? "The body is not valid UTF-8" : malformed;
    issues.push({ code: "custom", message, input: bytes });
    return z.NEVER;
  }
});

async function readBytes(request: Request): Promise<Bytes> {
  const announced = request.headers.get("Content-Length");
  if (Number(announced) > BODY_LIMIT) throw new ApiError("body_too_large", TOO_LARGE);
  // The runtime enforces the announced length, and reading everything at once is several times faster.
  const reading = announced === null ? readAtMost(BODY_LIMIT + 1, request) : request.arrayBuffer();
  const bytes = await reading.catch(() => {
    throw new ApiError("invalid_request", "The body is incomplete or malformed.");
  });
  if (bytes.byteLength > BODY_LIMIT) throw new ApiError("body_too_large", TOO_LARGE);
  return bytes;
}

async function readAtMost(length: number, { body }: Request): Promise<Uint8Array> {
  const read = await body?.getReader({ mode: "byob" }).readAtLeast(length, new Uint8Array(length));
  return read?.value ?? new Uint8Array();
}
