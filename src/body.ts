// Reading a JSON request body: its media type, its size and its encoding are checked before it is parsed, and the
// size while it is read, because a chunked body announces none.

import { ApiError } from "./errors.ts";
import { parseJson } from "./json.ts";

/** In bytes. */
export const BODY_LIMIT = 64 * 1024;
const JSON_TYPE = /^(application\/json|[^\s/]+\/[^\s/]+\+json)$/i; // the suffix: RFC 6839, section 3.1

/** The request's body, with exact integers. Throws 415, 413 or 400. */
export async function readJson(request: Request): Promise<unknown> {
  const [mediaType = ""] = (request.headers.get("Content-Type") ?? "").split(";");
  if (!JSON_TYPE.test(mediaType.trim())) {
    throw new ApiError("unsupported_media_type", "The body must be sent as Content-Type: application/json.");
  }
  const text = await readText(request);
  try {
    return parseJson(text);
  } catch {
    // Not only a SyntaxError: brackets nested by the thousand exhaust the parser's stack.
    throw new ApiError(
      "bad_request",
      'The body is not valid JSON; it must be one JSON object, such as {"name": "Rex", "categoryId": 1}.',
    );
  }
}

async function readText(request: Request): Promise<string> {
  if (Number(request.headers.get("Content-Length")) > BODY_LIMIT) throw tooLarge();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength;
    if (length > BODY_LIMIT) throw tooLarge();
    text += decode(decoder, chunk);
  }
  return text + decode(decoder);
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined });
  } catch {
    throw new ApiError("bad_request", "The body is not valid UTF-8.");
  }
}

const tooLarge = () => new ApiError("content_too_large", `The body must be at most ${BODY_LIMIT} bytes.`);
